package spec

import "fmt"

// LimitError says that a run asked for more than it may.
type LimitError struct {
	// Limit names the limit: "effects".
	Limit string
	// Detail says what was too much: "more than 10000 object writes".
	Detail string
}

// Error names the limit and what was too much.
func (e *LimitError) Error() string { return e.Limit + " limit: " + e.Detail }

// Finalf makes an error whose text is complete: the builtin's name is put neither before it, nor before any other error
// that has a method Final().
func Finalf(format string, args ...any) error { return final{fmt.Errorf(format, args...)} }

type final struct{ error }

func (e final) Unwrap() error { return e.error }
func (final) Final()          {}
