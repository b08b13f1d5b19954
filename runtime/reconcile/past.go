package reconcile

import "time"

// Past is what earlier looks at a parent have left.
type Past struct {
	// Contests are children that somebody changes again and again.
	Contests []Contest
}

// Contest is a child that was put right several times, and soon changed again.
type Contest struct {
	ID
	// By is who changes it.
	By string
	// Left is how long it stays as it is before it may be put right again; 0: it may be now.
	Left time.Duration
}

// Write is one write about a child.
type Write struct {
	ID
	// By is who had changed the child, which is put right; "" of any other write.
	By string
}
