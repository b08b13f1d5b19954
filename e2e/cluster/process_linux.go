package cluster

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps a test that panics or times out from leaving cmd behind.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
