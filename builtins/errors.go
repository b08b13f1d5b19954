package builtins

import (
	"fmt"
	"time"
)

// FailError is the end of a run that called fail(). errors.As finds it in what
// the call of the hook returned.
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

// LimitError says that a run asked for more than it may.
type LimitError struct {
	// Limit names the limit: "effects".
	Limit string
	// Detail says what was too much: "more than 10000 object writes".
	Detail string
}

// Error names the limit and what was too much.
func (e *LimitError) Error() string { return e.Limit + " limit: " + e.Detail }

// finalError is an error whose text is complete: the builtin's name is not put
// before it.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

func finalf(format string, args ...any) error { return finalError{fmt.Errorf(format, args...)} }
