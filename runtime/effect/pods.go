package effect

import "time"

// Exec is a command that runs in a container of a Pod, at once.
type Exec struct {
	// Pod names the Pod, Container one of its containers.
	Pod       Ref
	Container string
	// Argv is the command with its arguments; no shell looks at it.
	Argv []string
	// Stdin is what the command reads, and after it the end; nil: it has no input at all.
	Stdin []byte
	// Timeout bounds the command, MaxBytes its outputs together.
	Timeout  time.Duration
	MaxBytes int
}

// LogQuery asks for the log of a container.
type LogQuery struct {
	// Pod names the Pod, Container one of its containers.
	Pod       Ref
	Container string
	// Previous asks for the log of the container before its last restart.
	Previous bool
	// Tail is how many of the last lines; 0 means all.
	Tail int
	// Since is how far back, in whole seconds; 0 means from the beginning.
	Since time.Duration
	// Timeout bounds the answer, MaxBytes its size.
	Timeout  time.Duration
	MaxBytes int
}
