package data

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

func gzipSpecs() []spec.Spec {
	data := []spec.Param{spec.Required("data", spec.Text)}
	return []spec.Spec{
		spec.Pure("gzip.encode", callGzip, data...),
		spec.Pure("gzip.decode", callGunzip, data...),
	}
}

func callGzip(c *spec.Call) (starlark.Value, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, c.Text("data")); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return starlark.Bytes(out.String()), spec.CheckText(out.Len())
}

func callGunzip(c *spec.Call) (starlark.Value, error) {
	var out bytes.Buffer
	r, err := gzip.NewReader(bytes.NewReader([]byte(c.Text("data"))))
	if err == nil {
		_, err = io.Copy(&out, io.LimitReader(r, spec.MaxText+1)) // a little data may unpack to very much
	}
	if err != nil {
		return nil, errors.New("the data is no gzip, or lacks its end")
	}
	return starlark.Bytes(out.String()), spec.CheckText(out.Len())
}
