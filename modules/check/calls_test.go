package check

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// A tree in which anything is broken is checked to its end: bytes, lines and words of the
// files go, double, or change places.
func TestBrokenTreesAreChecked(t *testing.T) {
	whole := read(t, "testdata/calls.txtar")
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		files := fstest.MapFS{}
		err := fs.WalkDir(whole.Files, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(whole.Files, p)
			files[p] = &fstest.MapFile{Data: []byte(breakText(r, string(data)))}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if broken, err := tree.Read(files, tree.Options{}); err == nil {
			run(t, Options{Tree: broken})
		}
	}
}

func breakText(r *rand.Rand, text string) string {
	for range r.IntN(3) {
		sep := []string{"", "\n", " ", ","}[r.IntN(4)]
		parts := strings.Split(text, sep)
		if len(parts) == 0 {
			continue // nothing is left
		}
		i, j := r.IntN(len(parts)), r.IntN(len(parts))
		switch r.IntN(3) {
		case 0:
			parts[i] = ""
		case 1:
			parts[i] += sep + parts[j]
		default:
			parts[i], parts[j] = parts[j], parts[i]
		}
		text = strings.Join(parts, sep)
	}
	return text
}
