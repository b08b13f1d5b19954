package main

import "syscall"

// childAttributes gives a child its own process group, so that Ctrl-C reaches the
// bench alone, and its end with ours, even when we are killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
