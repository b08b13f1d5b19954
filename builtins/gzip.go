package builtins

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"go.starlark.net/starlark"
)

func gzipSpecs() []Spec {
	data := []Param{required("data", TypeText)}
	return []Spec{
		{Name: "gzip.encode", Phases: PhaseAny, call: callGzip, Params: data},
		{Name: "gzip.decode", Phases: PhaseAny, call: callGunzip, Params: data},
	}
}

func callGzip(c *call) (starlark.Value, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, c.text("data")); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return starlark.Bytes(out.String()), checkText(out.Len())
}

func callGunzip(c *call) (starlark.Value, error) {
	var out bytes.Buffer
	r, err := gzip.NewReader(bytes.NewReader([]byte(c.text("data"))))
	if err == nil {
		_, err = io.Copy(&out, io.LimitReader(r, maxText+1)) // a little data may unpack to very much
	}
	if err != nil {
		return nil, errors.New("the data is no gzip, or lacks its end")
	}
	return starlark.Bytes(out.String()), checkText(out.Len())
}
