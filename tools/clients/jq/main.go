// jq runs one program over the JSON of its input, as the command of the same name does without options.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/itchyny/gojq"
)

func main() {
	if err := run(os.Args[len(os.Args)-1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "jq:", err)
		os.Exit(1)
	}
}

func run(program string, in io.Reader, out io.Writer) error {
	query, err := gojq.Parse(program)
	if err != nil {
		return err
	}
	inputs, outputs := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var v any
		if err := inputs.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		results := query.Run(v)
		for r, ok := results.Next(); ok; r, ok = results.Next() {
			if err, failed := r.(error); failed {
				return err
			}
			if err := outputs.Encode(r); err != nil {
				return err
			}
		}
	}
}
