package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// state is the folder of one cluster: etcd's data, certificates and logs.
type state struct {
	dir       string
	temporary bool
	lock, log *os.File
}

// openState makes the folder when it is missing, takes its lock and sends the
// logs of all components to a file in it, keeping stderr for what ends the process. An empty dir means a temporary folder.
func openState(dir string, stderr *os.File) (*state, error) {
	s := &state{dir: dir, temporary: dir == ""}
	var err error
	if s.temporary {
		s.dir, err = os.MkdirTemp("", "devcluster-")
	} else if s.dir, err = filepath.Abs(dir); err == nil { // components take no other path of a file
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	// Two processes on one folder: the second would wait for etcd's own lock for ever.
	if s.lock, err = os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("folder %s is in use by another devcluster; stop it or choose another --dir", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", s.path("lock"), err)
	}
	if s.log, err = os.Create(s.path("devcluster.log")); err != nil {
		return nil, err
	}
	return s, s.redirectLogs(stderr)
}

func (s *state) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// redirectLogs keeps what the components log off the terminal.
func (s *state) redirectLogs(stderr *os.File) error {
	// The API server's etcd client has opened stderr before main and cannot be told
	// otherwise; a crash is still shown.
	if err := unix.Dup2(int(s.log.Fd()), unix.Stderr); err != nil {
		return fmt.Errorf("redirect stderr: %w", err)
	}
	if err := debug.SetCrashOutput(stderr, debug.CrashOptions{}); err != nil {
		return fmt.Errorf("redirect crashes: %w", err)
	}
	log.SetOutput(s.log)
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	// Without one_output a line goes to the file once a severity, without the
	// threshold errors go to stderr too.
	for name, value := range map[string]string{"logtostderr": "false", "one_output": "true", "stderrthreshold": "FATAL"} {
		if err := fs.Set(name, value); err != nil {
			return err // a flag that klog no longer has
		}
	}
	klog.SetOutput(s.log)
	klog.OsExit = func(int) { // a component that gives up ends the process without a word
		fail(stderr, "a component stopped; its last words are in "+s.log.Name())
	}
	return nil
}

// close removes a temporary folder, unless its logs are wanted, and gives up the
// lock.
func (s *state) close(keepLogs bool) {
	klog.Flush()
	if s.temporary && !keepLogs {
		_ = os.RemoveAll(s.dir)
	}
	// The log stays open: goroutines of the components outlive their Run.
	_ = s.lock.Close()
}
