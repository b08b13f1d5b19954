package hook

import (
	"time"

	"github.com/starling-operator/starling/runtime/reconcile"
)

// Past is what earlier runs about a parent have left.
type Past struct {
	// Contests are children that somebody changes again and again.
	Contests []Contest
	// Kept are children that the API server keeps in another form than the one asked for.
	Kept []Kept
	// Failures are writes that have failed.
	Failures []reconcile.Failure
}

// Contest is a child that was put right several times, and soon changed again.
type Contest struct {
	reconcile.ID
	// By is who changes it.
	By string
	// Left is how long it stays as it is before it may be put right again; 0: it may be now.
	Left time.Duration
}
