package main

import "syscall"

// childAttributes gives a child its own process group, and its end with ours, even
// when we are killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
