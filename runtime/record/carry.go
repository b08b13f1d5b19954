package record

import (
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
)

// Codec writes data down as records have it, for others who keep what runs are given.
type Codec struct{ codec *codec }

// NewCodec returns a codec. It fails only by a mistake in the code.
func NewCodec() (*Codec, error) {
	c, err := newCodec()
	return &Codec{c}, err
}

// Write returns the same bytes for the same data: plain data, and what Value and Request return
// inside it.
func (c *Codec) Write(v any) ([]byte, error) { return c.codec.write(v) }

// Read is the reverse of Write; it fails for what Write has not written.
func (c *Codec) Read(data []byte, into any) error { return c.codec.read(data, into) }

// Value returns a row of a watch for Write; it fails for what no watch keeps.
func (c *Codec) Value(v starlark.Value) (any, error) { return valueOf(v) }

// ReadValue is the reverse of Value, of what Write has made of it.
func (c *Codec) ReadValue(data []byte) (starlark.Value, error) {
	var v *value
	err := c.codec.read(data, &v)
	return v.starlark(), err
}

// Request returns a request for Write.
func (c *Codec) Request(r *builtins.Request) any { return requestOf(r) }

// ReadRequest is the reverse of Request, of what Write has made of it.
func (c *Codec) ReadRequest(data []byte) (*builtins.Request, error) {
	var r *request
	if err := c.codec.read(data, &r); err != nil {
		return nil, err
	}
	return r.request(), nil
}
