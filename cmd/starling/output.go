package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// formats are what -o takes.
var formats = []string{"table", "yaml", "json"}

func checkFormat(format string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	err := fmt.Errorf("--output %q is not known; use table, yaml or json", format)
	if near := nearest(format, formats); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return err
}

// writeData writes v as yaml or json.
func writeData(w io.Writer, format string, v any) error {
	var out []byte
	var err error
	if format == "json" {
		out, err = json.MarshalIndent(v, "", "  ")
		out = append(out, '\n')
	} else {
		out, err = yaml.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("cannot write the answer as %s: %w", format, err)
	}
	_, err = w.Write(out)
	return err
}

// plainText keeps what comes from elsewhere (errors, names) from moving the
// cursor or colouring the terminal, and keeps it on one line.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, s)
}
