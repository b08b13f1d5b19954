package builtins

import "go.starlark.net/starlark"

// ReceiveBinding is http.receive(...).
type ReceiveBinding struct {
	// Path is the path of the URL: "/github".
	Path string
}

// respondReceive reads what a hook of http.receive returned.
func (r *Run) respondReceive(_ starlark.Value) error { return nil }
