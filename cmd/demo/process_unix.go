//go:build !linux

package main

import "syscall"

// childAttributes gives a child its own process group.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
