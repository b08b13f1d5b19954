package hook

import (
	"time"

	"github.com/starling-operator/starling/runtime/reconcile"
)

// Past is what earlier runs about a parent have left.
type Past struct {
	// Contests are children that somebody changes again and again.
	Contests []Contest
}

// Contest is a child that was put right several times, and soon changed again.
type Contest struct {
	reconcile.ID
	// By is who changes it.
	By string
	// Left is how long it stays as it is before it may be put right again; 0: it may be now.
	Left time.Duration
}
