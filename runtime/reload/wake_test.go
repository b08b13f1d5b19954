package reload

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-operator/starling/modules/tree"
)

// An archive that comes from somewhere else makes another tree, and so does another reason why it
// does not come: nothing changes on the disk.
func TestArchivesFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "web", "module.star"), "module()")
	lock, err := tree.FormatLock(map[string]tree.Locked{"web": {URL: "https://example.com/redis", Version: "1.2.0", Digest: "sha256:" + strings.Repeat("0", 64)}})
	must(t, err)
	put(t, filepath.Join(dir, tree.LockFile), string(lock))
	var why atomic.Value
	why.Store("one")
	wake := make(chan struct{}, 1)
	f := watch(t, dir, func(o *Options) {
		o.Wake = wake
		o.Tree.Archives = func(tree.Locked) ([]byte, error) { return nil, errors.New(why.Load().(string)) }
	})
	f.await("web=broken")
	why.Store("two")
	wake <- struct{}{}
	f.await("web=broken")
}
