package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// MemoryGroup is a memory cgroup: processes in it that together take more than its limit
// are killed.
type MemoryGroup struct {
	dir   string
	peak  string // the file that holds the most it has taken
	kills string // the file that holds how many processes the kernel has killed
}

// NewMemoryGroup makes a cgroup with a limit in bytes, below the one of this process or
// the nearest parent that allows it. It is removed when the test ends. An error says that
// this machine or user may not have one.
func NewMemoryGroup(t testing.TB, limit int64) (*MemoryGroup, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var problems []error
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file, peak, kills := "/sys/fs/cgroup", "memory.max", "memory.peak", "memory.events"
		if v1 := parts[1] == "memory"; v1 {
			root, file, peak, kills = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"
		} else if parts[1] != "" {
			continue
		}
		for path := parts[2]; ; path = filepath.Dir(path) {
			dir, err := limited(filepath.Join(root, path), file, limit)
			if err == nil {
				t.Cleanup(func() { _ = os.Remove(dir) })
				return &MemoryGroup{dir: dir, peak: filepath.Join(dir, peak), kills: filepath.Join(dir, kills)}, nil
			}
			problems = append(problems, err)
			if path == "/" || path == "." {
				break
			}
		}
	}
	return nil, errors.Join(problems...)
}

// limited makes a folder below parent whose limit can be set.
func limited(parent, file string, limit int64) (string, error) {
	dir, err := os.MkdirTemp(parent, "starling-e2e-")
	if err != nil {
		return "", err
	}
	// Without O_CREATE: where the controller is off there is no such file.
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprint(f, limit)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// Peak is the most memory in bytes that the processes have taken together, what the
// kernel keeps for their files included; 0 where the kernel does not say.
func (g *MemoryGroup) Peak() int64 {
	text, err := os.ReadFile(g.peak)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// Kills is how many processes the kernel has killed because the group had taken all its
// memory.
func (g *MemoryGroup) Kills() (int, error) {
	text, err := os.ReadFile(g.kills)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, found := strings.CutPrefix(line, "oom_kill "); found {
			return strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return 0, fmt.Errorf("%s does not count what the kernel kills", g.kills)
}

// Command is the command line that starts a program in the group. The number of the
// process is the program's.
func (g *MemoryGroup) Command(program string, args ...string) (string, []string) {
	if g == nil {
		return program, args
	}
	return "/bin/sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, g.dir, program}, args...)
}
