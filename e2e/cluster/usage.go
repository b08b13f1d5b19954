package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is the resident memory of a process in bytes.
type Memory struct {
	Now, Peak int64
	// File is the part of Now that shows files, the program above all: the kernel
	// may take it back at any time, and counts it as it likes.
	File int64
}

// Own is the memory that shows no file.
func (m Memory) Own() int64 { return m.Now - m.File }

// MemoryOf asks the kernel, which tells it on Linux alone.
func MemoryOf(pid int) (Memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("resident memory can be read on Linux only: %w", err)
	}
	return Memory{Now: kernelBytes(data, "VmRSS"), Peak: kernelBytes(data, "VmHWM"), File: kernelBytes(data, "RssFile")}, nil
}

// kernelBytes reads a line "VmRSS:   1234 kB".
func kernelBytes(status []byte, key string) int64 {
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// cpuTick is the unit in which Linux tells of time: USER_HZ is 100 everywhere.
const cpuTick = 10 * time.Millisecond

// CPU returns the processor time that the process has used, in user and in kernel mode.
func (p *Process) CPU() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return 0, fmt.Errorf("processor time can be read on Linux only: %w", err)
	}
	return kernelTime(data)
}

// kernelTime reads the sum of utime and stime, fields 14 and 15. Field 2, the name, may
// hold anything but ends with the last parenthesis.
func kernelTime(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/<pid>/stat has an unexpected form")
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * cpuTick, errors.Join(err, err2)
}
