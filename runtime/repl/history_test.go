package repl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHistoryIsKeptWithoutSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "starling", "repl_history")
	h := OpenHistory(path)
	for _, text := range []string{"a", "a", "def f():\n    return 1\n", "x = reveal(s)", "password = \"x\"", "", strings.Repeat("x", maxHistoryText+1), "b"} {
		if _, err := h.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	session := h.Len()
	h.Quiet = func() bool { return true } // the lines of :apply -
	for _, text := range []string{"data:", "  pgpass: aHVudGVyMg=="} {
		if _, err := h.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	h.Quiet = nil
	if _, err := h.Write(":apply -\ndata:\n  pgpass: aHVudGVyMg==\n."); err != nil { // pasted
		t.Fatal(err)
	}
	if session != 5 || h.Len() != 8 {
		t.Errorf("the session has %q", h.Dump())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	again := OpenHistory(path)
	if got := fmt.Sprintf("%q", again.Dump()); got != `["a" "def f():\n    return 1" "b"]` {
		t.Errorf("kept is %s", got)
	}
	if line, err := again.GetLine(2); line != "b" || err != nil {
		t.Errorf("the last line: %q, %v", line, err)
	}
	if _, err := again.GetLine(3); err == nil {
		t.Error("there is a line behind the last")
	}
}

// A file that is broken, too long, or not to be had costs the history, and no more.
func TestHistoryTakesAnyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "long")
	if err := os.WriteFile(path, []byte(strings.Repeat("\"x\"\nbroken\n", 3*maxHistory)), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := OpenHistory(path); h.Len() != maxHistory {
		t.Errorf("%d of a long file", h.Len())
	}
	if data, err := os.ReadFile(path); err != nil || len(data) != 4*maxHistory {
		t.Errorf("a long file stays long: %d, %v", len(data), err)
	}
	for _, path := range []string{"", dir, filepath.Join(path, "x")} {
		h := OpenHistory(path)
		if n, err := h.Write("a"); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", path, n, err)
		}
	}
	env := map[string]string{"XDG_STATE_HOME": "/s", "HOME": "/h"}
	for _, want := range []string{"/s/starling/repl_history", "/h/.local/state/starling/repl_history", ""} {
		if got := HistoryFile(func(k string) string { return env[k] }); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if env["XDG_STATE_HOME"] != "" {
			env["XDG_STATE_HOME"] = ""
		} else {
			env["HOME"] = ""
		}
	}
}
