package inputs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
)

// testdata/before is what the first starling with this format has written: its inputs are read for as long as the
// format stays, and are written as they were. The actions that follow may become others.
func TestAFileOfBeforeIsRead(t *testing.T) {
	data, err := os.ReadFile("testdata/before")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Replay(t.Context(), bytes.NewReader(data))
	if _, differs := errors.AsType[*DifferenceError](err); err != nil && !differs {
		t.Errorf("%+v, %v", again, err)
	}
	inputs := 0
	for r := bytes.NewReader(data); ; {
		e, err := readEntry(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Input == nil {
			continue
		}
		inputs++
		in, err := (&decoder{}).input(e.Input.Kind, e.Input.Data)
		if err != nil {
			t.Fatal(err)
		}
		if e.Input.Kind == "Start" || e.Input.Kind == "Reload" {
			continue // they bring a generation
		}
		if now, err := raw(in); err != nil || !bytes.Equal(now, e.Input.Data) {
			t.Errorf("%s is written as %x, %v, and was %x", e.Input.Kind, now, err, e.Input.Data)
		}
	}
	if inputs < 30 {
		t.Errorf("it has %d inputs", inputs)
	}
}
