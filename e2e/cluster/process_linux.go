package cluster

import (
	"os/exec"
	"syscall"
)

// DieWithParent keeps a test that panics or times out from leaving cmd behind.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
