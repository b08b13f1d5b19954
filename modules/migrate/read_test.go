package migrate

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Links to folders of the tree are followed, those that lead out of it are not, and none without end.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	old, other := filepath.Join(dir, "old"), filepath.Join(dir, "other")
	for name, text := range map[string]string{
		filepath.Join(old, "storage/web/templates/a.yaml"):  "a: 1\n",
		filepath.Join(other, "templates/b.yaml"):            "b: 1\n",
		filepath.Join(old, "020-jobs/templates/plain.yaml"): "c: 1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"010-web":                    "storage/web",
		"030-out":                    "../other",
		"020-jobs/templates/gone":    "nowhere",
		"020-jobs/templates/circle":  "..",
		"020-jobs/templates/further": "plain.yaml",
	} {
		if err := os.Symlink(target, filepath.Join(old, name)); err != nil {
			t.Fatal(err)
		}
	}
	for follow, want := range map[bool][]string{
		false: {"010-web/templates/a.yaml", "020-jobs/templates/further", "020-jobs/templates/plain.yaml", "storage/web/templates/a.yaml"},
		true:  {"010-web/templates/a.yaml", "020-jobs/templates/further", "020-jobs/templates/plain.yaml", "030-out/templates/b.yaml", "storage/web/templates/a.yaml"},
	} {
		fsys, closeAll, err := tree.Open(old, follow)
		if err != nil {
			t.Fatal(err)
		}
		files, left, err := read(fsys, "")
		closeAll()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("follow %v: got %q, want %q", follow, got, want)
		}
		notes := []string{"020-jobs/templates/circle: it is a link to a folder in which it lies", "020-jobs/templates/gone: it is a link that cannot be followed: "}
		if !follow {
			notes = append(notes, "030-out: it is a link that cannot be followed: path escapes from parent; --follow-links follows")
		}
		for _, want := range notes {
			if !slices.ContainsFunc(left, func(n Note) bool { return n.Fate == Left && strings.HasPrefix(n.String(), want) }) {
				t.Errorf("follow %v: no note %q in %v", follow, want, left)
			}
		}
	}
}

// A tree without end, or that is too large, is refused whole.
func TestTreesThatAreTooLarge(t *testing.T) {
	many := fstest.MapFS{}
	for i := range maxFiles + 1 {
		many[fmt.Sprintf("web/templates/%d.yaml", i)] = &fstest.MapFile{}
	}
	heavy := fstest.MapFS{}
	data := make([]byte, tree.MaxFileBytes)
	for i := range maxBytes/len(data) + 1 {
		heavy[fmt.Sprintf("web/templates/%d.yaml", i)] = &fstest.MapFile{Data: data}
	}
	for want, fsys := range map[string]fs.FS{"more than 20000 files": many, "more than 64 MiB": heavy} {
		if _, err := AddonOperator(t.Context(), fsys, nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
