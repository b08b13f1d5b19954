package format

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-operator/starling/runtime/script"
)

func TestSource(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"spaces":                  {"x=1\n", "x = 1\n"},
		"no end of line":          {"x = 1", "x = 1\n"},
		"windows":                 {"x=1\r\ny=2\r\n", "x = 1\ny = 2\n"},
		"empty":                   {"", ""},
		"loads come first":        {"x = 1\nload(\"./b.star\", \"d\", \"c\")\n", "load(\"./b.star\", \"c\", \"d\")\n\nx = 1\n"},
		"comments stay":           {"# what\n\n\n\ndef f(a,b): # why\n  return a  # end\n", "# what\n\ndef f(a, b):  # why\n    return a  # end\n"},
		"a lambda in a condition": {"x = a if b else lambda: ()\n", "x = a if b else (lambda: ())\n"},
		"conditions in tuples": {
			"def f(a, b):\n    for x in a, b if a else {}[b]:\n        y = \"é\", a if x else b[0], not x if y else -b[1:]\n        return a, b if x else lambda: ()\n    x[a, b if a else b] = a if x else b, (a, b if x else f(\n        a,\n    ))\n    return a, b if x else \"\"\"two\nlines\"\"\", a\n",
			"def f(a, b):\n    for x in a, (b if a else {}[b]):\n        y = \"é\", (a if x else b[0]), (not x if y else -b[1:])\n        return a, (b if x else (lambda: ()))\n    x[a, (b if a else b)] = a if x else b, (a, b if x else f(\n        a,\n    ))\n    return a, (b if x else \"\"\"two\nlines\"\"\"), a\n",
		},
		// buildifier would sort these in a BUILD file.
		"order stays":  {"hook(f, on=[b, a], name=\"x\")\n", "hook(f, on = [b, a], name = \"x\")\n"},
		"lists stay":   {"deps = [\"b\", \"a\"]\n", "deps = [\"b\", \"a\"]\n"},
		"labels stay":  {"x = f(deps = [\"//a:a\"])\n", "x = f(deps = [\"//a:a\"])\n"},
		"a doc string": {"def f():\n  \"\"\"One.\n\n  Two.\n  \"\"\"\n", "def f():\n    \"\"\"One.\n\n    Two.\n    \"\"\"\n"},
	} {
		got, err := Source("a.star", []byte(c.src))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
			continue
		}
		if again, err := Source("a.star", got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: a second time it becomes %q, %v", name, again, err)
		}
	}
}

func TestWhatDoesNotParseIsAnError(t *testing.T) {
	for name, src := range map[string]string{
		"syntax":    "x = (1,\n",
		"no text":   "\x00\xff",
		"words":     "this is no program\n",
		"too large": strings.Repeat("#", script.MaxFileSize+1),
		"half":      "x = 1 if\n",
		"bytes":     "x = f(b\"a\")\n", // Starlark, but nothing that buildifier knows
	} {
		got, err := Source("a.star", []byte(src))
		var at *script.Error
		if err == nil || got != nil || !errors.As(err, &at) || !strings.HasPrefix(err.Error(), "a.star") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFilesAreReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.star")
	if err := os.WriteFile(path, []byte("x=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.star")
	if err := os.Symlink("a.star", link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := File(link, false); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "x=1\n" {
		t.Errorf("written without being asked: %q", got)
	}
	if _, _, err := File(link, true); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	info, err = os.Stat(path)
	if got, _ := os.ReadFile(path); string(got) != "x = 1\n" || err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v", got, info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFindTakesStarFilesOnly(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"a.star", "b.yaml", "c/d.star", ".git/e.star"} {
		path := filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Find([]string{dir, filepath.Join(dir, "a.star")})
	if err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"b.yaml", "none.star"} {
		if _, err := Find([]string{filepath.Join(dir, bad)}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// Files that people copy are formatted.
func TestOurFilesAreFormatted(t *testing.T) {
	files, err := Find([]string{"../../examples", "../../stdlib"})
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	for _, path := range files {
		src, formatted, err := File(path, false)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff, _ := Diff(path, src, formatted); diff != "" {
			t.Errorf("run: starling fmt %s\n%s", path, diff)
		}
	}
}

func FuzzSource(f *testing.F) {
	f.Add([]byte("load(\"./a.star\", \"b\")\ndef f(x, *, y = 1):\n    return [a for a in x if a] + {1: 2}[y]  # c\n"))
	f.Add([]byte("x = \"\"\"a\n\n  b\"\"\" % (1,)\nhook(lambda: 0o17 + 1E3)\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := Source("a.star", src)
		if err != nil {
			return
		}
		if _, err := script.Parse("a.star", out); err != nil {
			t.Error(err)
		}
	})
}

// A pipe or a device is not read, and no link leads to a file outside the formatted ones.
func TestNoFilesToFormat(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe.star"), filepath.Join(dir, "link.star")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.conf"), []byte("x=1\n"), 0o600), os.Symlink("a.conf", link)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "a device or a pipe", link: "a link to a file that is no .star file"} {
		if _, err := Find([]string{path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
