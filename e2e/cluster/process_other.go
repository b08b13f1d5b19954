//go:build !linux

package cluster

import "os/exec"

// dieWithParent does nothing: only Linux can tell a child that its parent died.
func dieWithParent(*exec.Cmd) {}
