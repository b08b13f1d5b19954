package bounded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVolumesAreReadAsOne(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, text string) {
		t.Helper()
		got := ""
		files, err := Volume(dir, 10, "a", "b")
		if err != nil {
			got = strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
		} else {
			got = string(files["a"]) + string(files["b"])
		}
		if got != text {
			t.Errorf("%s: %s, want %s", what, got, text)
		}
	}
	write("a", "1")
	want("one is missing", "b: it is not there")
	write("b", "2")
	want("plain files", "12")
	write("b", "12345678901")
	want("too large", "b: it is larger than 10 bytes")
	write("..1/a", "3")
	write("..1/b", "4")
	if err := os.Symlink("..1", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	want("a volume", "34")
}
