package inputs

import (
	"flag"
	"os"
	"testing"
)

var path = flag.String("file", "", "file of starling run --record-inputs")

// The file of a bug report: go test ./runtime/inputs -run TestFile -v -args -file FILE
func TestFile(t *testing.T) {
	if *path == "" {
		t.Skip("no -file is given")
	}
	f, err := os.Open(*path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	again, err := Replay(t.Context(), f)
	t.Logf("written by starling %s: %d inputs handled, %d actions; the end is cut off: %v", again.Version, again.Inputs, again.Actions, again.Cut)
	if err != nil {
		t.Error(err)
	}
}
