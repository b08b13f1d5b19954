package admin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// maxSocketPath is how long a unix socket's path may be: the field of the system
// call has 108 bytes, the last one a zero (macOS: 104).
const maxSocketPath = 103

// socket is a listening unix socket together with the lock that proves that its
// owner lives. The kernel drops the lock with the process, however it ends, so a
// socket file without a held lock is a dead one's and is replaced. Asking the
// socket itself would leave a gap in which two that start at the same moment both
// take the file for dead.
type socket struct {
	*net.UnixListener
	path string
	lock *os.File
}

// Lock has nobody else run with the socket at path, until the file is closed or the process
// ends. name is for the error when another process does already.
func Lock(path, name string) (*os.File, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	if err := MakeFolder(folderOf(path)); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s.lock: %w; choose another folder with --state-dir", path, cause(err))
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another starling named %s runs with this --state-dir (socket %s); stop it, or choose another --name or --state-dir", name, path)
		}
		return nil, fmt.Errorf("cannot lock %s.lock: %w; choose another folder with --state-dir", path, cause(err))
	}
	return lock, nil
}

// openSocket listens on path, for this user only. It takes the lock, see [Lock], unless the
// process holds it.
func openSocket(path, name string, held bool) (*socket, error) {
	var lock *os.File // nil: that of somebody else, who closes it
	if !held {
		var err error
		if lock, err = Lock(path, name); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		lock.Close()
		return nil, fmt.Errorf("cannot replace the old socket %s: %w; remove it, or choose another --state-dir", path, cause(err))
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		// The folder is closed to others, so nobody can come in before this.
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		if ln != nil {
			ln.Close()
		}
		lock.Close()
		return nil, fmt.Errorf("cannot listen on the socket %s: %w; choose another folder with --state-dir", path, cause(err))
	}
	return &socket{UnixListener: ln, path: path, lock: lock}, nil
}

// Close removes the socket, then gives the lock back: in the other order a new
// process could lose its socket to us. The lock file stays; removing it would let
// two processes hold locks on two files of one name.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	s.lock.Close()
	return err
}

// checkSocketPath refuses paths that no socket can have; the system call itself
// only says "invalid argument".
func checkSocketPath(path string) error {
	if path == "" {
		return errors.New("no socket path given; choose a folder with --state-dir")
	}
	if len(path) > maxSocketPath {
		return fmt.Errorf("socket path %s has %d bytes, a socket can have %d; choose a shorter --state-dir", path, len(path), maxSocketPath)
	}
	return nil
}
