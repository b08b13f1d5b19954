package builtins

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"go.starlark.net/starlark"
)

func gzipSpecs() []Spec {
	data := func(doc string) []Param { return []Param{{Name: "data", Type: TypeText, Doc: doc}} }
	return []Spec{
		{Name: "gzip.encode", Phases: PhaseAny, Params: data("Text, taken as UTF-8, or bytes."), Returns: "bytes", call: callGzip,
			Doc: "Compresses text or bytes with gzip, with no time and no name in it."},
		{Name: "gzip.decode", Phases: PhaseAny, Params: data("The compressed data, as bytes."), Returns: "bytes", call: callGunzip,
			Doc: "Unpacks what was compressed with gzip, such as a layer of an image: 32 MiB at most. Data that is no gzip, or lacks its end, is an error."},
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
