package test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A session that a page shows is what starling says: "> " begins a line that is typed,
// ". " one that goes on.
func TestSessionsInDocsAreTrue(t *testing.T) {
	bin, err := starlingBinary()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range blocks(t) {
		if b.language != "repl" {
			continue
		}
		n++
		lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
		command, ok := strings.CutPrefix(lines[0], "$ starling ")
		if !ok {
			t.Fatalf("%s: a session begins with its command, not %q", b.file, lines[0])
		}
		var in, want strings.Builder
		for _, line := range lines[1:] {
			if text, typed := strings.CutPrefix(line, "> "); typed {
				in.WriteString(text + "\n")
			} else if text, typed := strings.CutPrefix(line+" ", ". "); typed {
				in.WriteString(strings.TrimSuffix(text, " ") + "\n")
			} else {
				want.WriteString(line + "\n")
			}
		}
		cmd := exec.Command(filepath.Join(bin, "starling"), strings.Fields(command+" -v")...)
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in.String()), &out, &out
		err := cmd.Run()
		got := strings.ReplaceAll(out.String(), "stdin:", "repl:") // as at a terminal
		if err != nil || got != want.String() {
			t.Errorf("%s: %s: %v\ngot\n%s\nwant\n%s", b.file, command, err, got, want.String())
		}
	}
	if n == 0 {
		t.Error("no session was found")
	}
}
