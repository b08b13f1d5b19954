//go:build !linux

package process

// unmapProgram is for Linux, which counts the pages of the program.
func unmapProgram() {}

// readPagesSingly is for Linux, too.
func readPagesSingly() {}
