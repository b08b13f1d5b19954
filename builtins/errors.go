package builtins

import (
	"time"
)

// FailError is the end of a run that called fail(). errors.As finds it in what the call of the hook returned.
type FailError struct {
	Msg string
	// RetryAfter is when to try again; 0 leaves that to the hook's retry.
	RetryAfter time.Duration
	// Permanent means that trying again is of no use before something changes.
	Permanent bool
	// Keep has the effects that the run has recorded so far be committed all the same.
	Keep bool
}

// Error returns the message.
func (e *FailError) Error() string { return e.Msg }

// Final says that the message is complete.
func (e *FailError) Final() {}
