package reload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/starling-operator/starling/modules/tree"
)

// tries is how often a folder is read that is never the same twice.
const tries = 5

// stable reads a tree that was the same twice in a row, so that it is one that somebody
// has made and not one that is being made. One with the digest that is known is so
// already.
func stable(dir string, o tree.Options, known string) (*tree.Tree, error) {
	before, err := tree.ReadDir(dir, o)
	for range tries {
		if err != nil {
			return nil, err
		}
		if before.Digest == known {
			return before, nil
		}
		var now *tree.Tree
		if now, err = tree.ReadDir(dir, o); err == nil && now.Digest == before.Digest {
			return now, nil
		}
		before = now
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("modules folder %s changes faster than it can be read", dir)
}

// maxBeside bounds what is read of a file beside the tree.
const maxBeside = 64 << 20

// digestOf is another one when one of these files holds something else, or comes or goes.
func digestOf(files []string) string {
	h := sha256.New()
	for _, name := range files {
		fmt.Fprintf(h, "%q ", name)
		f, err := os.Open(name)
		if err != nil {
			continue // its reader will say so
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			n, _ := io.Copy(h, io.LimitReader(f, maxBeside))
			fmt.Fprintf(h, " %d\n", n)
		}
		f.Close()
	}
	return hex.EncodeToString(h.Sum(nil))
}
