//go:build !linux

package cluster

import "os/exec"

// DieWithParent does nothing: only Linux can tell a child that its parent died.
func DieWithParent(*exec.Cmd) {}
