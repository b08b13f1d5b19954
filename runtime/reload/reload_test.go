package reload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/starling-operator/starling/modules/tree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder is a module tree on disk that is watched.
type folder struct {
	t    *testing.T
	dir  string // its place; the tree is perhaps elsewhere
	seen chan string
}

// watch runs a watcher on a path. Its results come through seen: the version of each
// module, or an error.
func watch(t *testing.T, dir string, change ...func(*Options)) *folder {
	t.Helper()
	f := &folder{t: t, dir: dir, seen: make(chan string, 10_000)}
	o := Options{
		Dir: dir, Quiet: 10 * time.Millisecond, MaxWait: 100 * time.Millisecond, Poll: time.Hour, Log: zerolog.Nop(),
		Changed: func(_ context.Context, tr *tree.Tree) { f.seen <- versions(tr) },
		Failed:  func(err error) { f.seen <- "error: " + err.Error() },
	}
	if tr, err := tree.ReadDir(dir, tree.Options{}); err == nil {
		o.Digest = tr.Digest
	}
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); Run(ctx, o) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// versions is "web=1 shop=2": the weights that the module.star of each module gives.
func versions(tr *tree.Tree) string {
	var out []string
	for _, m := range tr.Modules {
		text := "broken"
		if file, err := tr.Files.Open(m.Dir + "/module.star"); err == nil && m.Err == nil {
			buf := make([]byte, 100)
			n, _ := file.Read(buf)
			text = strings.TrimSpace(string(buf[:n]))
		}
		out = append(out, m.Name+"="+text)
	}
	return strings.Join(out, " ")
}

// await waits until this is told; what is told before must be what may come on the way.
func (f *folder) await(want string, onTheWay ...string) {
	f.t.Helper()
	late := time.After(3 * time.Minute)
	for {
		select {
		case got := <-f.seen:
			if got == want {
				return
			}
			found := false
			for _, w := range onTheWay {
				found = found || strings.HasPrefix(got, w)
			}
			if !found {
				f.t.Fatalf("told %q, want %q", got, want)
			}
		case <-late:
			f.t.Fatalf("nothing is told, want %q", want)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// relink replaces a link in one step.
func relink(t *testing.T, target, link string) {
	t.Helper()
	must(t, os.Symlink(target, link+".tmp"))
	must(t, os.Rename(link+".tmp", link))
}

func TestPlainFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/web/module.star", "1")
	put(t, dir+"/.git/HEAD", "1")
	f := watch(t, dir)
	put(t, dir+"/web/module.star", "2")
	f.await("web=2", "web=")
	put(t, dir+"/.git/HEAD", "2") // nothing of the tree
	put(t, dir+"/shop/module.star", "1")
	f.await("shop=1 web=2", "shop=")
	put(t, dir+"/shop/hooks/deep/a.star", "1")
	f.await("shop=1 web=2")
	put(t, dir+"/shop/hooks/deep/a.star", "2")
	f.await("shop=1 web=2")
	put(t, dir+"/shop/module.star.swp", "as editors do")
	must(t, os.Rename(dir+"/shop/module.star.swp", dir+"/shop/module.star"))
	f.await("shop=as editors do web=2", "shop=1 web=2")
	must(t, os.RemoveAll(dir+"/shop"))
	f.await("web=2", "shop=")
	must(t, os.Rename(dir+"/web", dir+"/010-www"))
	f.await("www=2")
}

// The kubelet writes a folder beside the one before and replaces the ..data link; then it
// removes the old one.
func TestKubeletVolume(t *testing.T) {
	dir := t.TempDir()
	swap := func(version string) {
		t.Helper()
		old, _ := os.Readlink(dir + "/..data")
		put(t, dir+"/..v"+version+"/web/module.star", version)
		put(t, dir+"/..v"+version+"/shop/module.star", version)
		relink(t, "..v"+version, dir+"/..data")
		if old != "" {
			must(t, os.RemoveAll(dir+"/"+old))
		}
	}
	swap("1")
	must(t, os.Symlink("..data/web", dir+"/web"))
	must(t, os.Symlink("..data/shop", dir+"/shop"))
	f := watch(t, dir)
	for i := 2; i < 10; i++ {
		swap(fmt.Sprint(i))
		f.await(fmt.Sprintf("shop=%d web=%d", i, i))
	}
}

// git-sync replaces a link on the way to the tree, and removes what it led to.
func TestGitSync(t *testing.T) {
	for name, sub := range map[string]string{"the link": "", "a folder behind it": "/deploy/addons"} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			swap := func(version string) {
				t.Helper()
				old, _ := os.Readlink(root + "/current")
				put(t, root+"/.worktrees/"+version+sub+"/web/module.star", version)
				put(t, root+"/.worktrees/"+version+sub+"/shop/module.star", version)
				relink(t, ".worktrees/"+version, root+"/current")
				if old != "" {
					must(t, os.RemoveAll(root+"/"+old))
				}
			}
			swap("1")
			f := watch(t, root+"/current"+sub)
			for i := 2; i < 10; i++ {
				swap(fmt.Sprint(i))
				f.await(fmt.Sprintf("shop=%d web=%d", i, i))
			}
			must(t, os.Symlink(".worktrees/nowhere", root+"/broken"))
			must(t, os.Rename(root+"/broken", root+"/current"))
			f.await("error: cannot read the modules folder " + root + "/current" + sub + ": no such file or directory")
			relink(t, ".worktrees/9", root+"/current")
			f.await("shop=9 web=9")
		})
	}
}

// Swaps while the tree is read never show half of one, whatever is removed meanwhile.
func TestNoHalfGenerations(t *testing.T) {
	root := t.TempDir()
	next := func(i int) {
		dir := fmt.Sprintf("%s/.%d", root, i)
		for j := range 15 {
			put(t, fmt.Sprintf("%s/m%02d/module.star", dir, j), fmt.Sprint(i))
		}
		relink(t, fmt.Sprintf(".%d", i), root+"/current")
		if i > 0 {
			must(t, os.RemoveAll(fmt.Sprintf("%s/.%d", root, i-1)))
		}
	}
	next(0)
	f := watch(t, root+"/current", func(o *Options) { o.Quiet, o.MaxWait = time.Microsecond, time.Millisecond })
	const last = 60
	for i := 1; i <= last; i++ {
		next(i)
	}
	for done := false; !done; {
		select {
		case got := <-f.seen:
			if strings.HasPrefix(got, "error: ") {
				continue // faster than it could be read: said, and tried again
			}
			first, _, _ := strings.Cut(strings.TrimPrefix(got, "m00="), " ")
			if n := strings.Count(got, "="+first); n != 15 {
				t.Fatalf("a generation of which %d of 15 are %s: %s", n, first, got)
			}
			done = first == fmt.Sprint(last)
		case <-time.After(3 * time.Minute):
			t.Fatal("the last one was missed")
		}
	}
}

// A folder that goes away is said after a moment, and one that comes is found.
func TestFolderGoesAndComes(t *testing.T) {
	root := t.TempDir()
	dir := root + "/a/modules"
	put(t, dir+"/web/module.star", "1")
	f := watch(t, dir)
	must(t, os.RemoveAll(root+"/a"))
	f.await("error: cannot read the modules folder "+dir+": no such file or directory", "error: modules folder", "web=")
	put(t, dir+"/web/module.star", "2")
	f.await("web=2", "web=", "error: ")
	put(t, dir+"/values.yaml", "a: [")
	f.await("error: modules folder "+dir+": values.yaml:1: did not find expected node content", "web=", "error: ")
	put(t, dir+"/values.yaml", "global: {}")
	f.await("web=2", "error: ")
}

// heard is a notifier that a test speaks to.
type heard struct{ out chan string }

func (heard) add(string) error        { return nil }
func (heard) remove(string)           {}
func (h heard) events() <-chan string { return h.out }
func (heard) close()                  {}

// Edits that follow each other are taken together, for so long and no longer.
func TestManyEdits(t *testing.T) {
	for name, tt := range map[string]struct {
		every       time.Duration
		edits       int
		least, most int // hand-overs
	}{
		"200 a minute for five minutes": {300 * time.Millisecond, 1000, 1000, 1000},
		"one every 50 ms for a minute":  {50 * time.Millisecond, 1200, 29, 31},
		"one burst":                     {time.Millisecond, 100, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				put(t, dir+"/web/module.star", "0")
				h := heard{make(chan string)}
				var mu sync.Mutex
				made := []time.Time{time.Now()} // by version
				var worst time.Duration
				handed, last := 0, ""
				f := watch(t, dir, func(o *Options) {
					o.notifier, o.Quiet, o.MaxWait = h, 200*time.Millisecond, 2*time.Second
					o.Changed = func(_ context.Context, tr *tree.Tree) {
						mu.Lock()
						defer mu.Unlock()
						before := 0
						fmt.Sscanf(last, "web=%d", &before)
						worst = max(worst, time.Since(made[min(before+1, len(made)-1)]))
						handed, last = handed+1, versions(tr)
					}
				})
				_ = f
				for i := 1; i <= tt.edits; i++ {
					time.Sleep(tt.every)
					mu.Lock()
					put(t, dir+"/.next", fmt.Sprint(i))
					must(t, os.Rename(dir+"/.next", dir+"/web/module.star"))
					made = append(made, time.Now())
					mu.Unlock()
					h.out <- dir + "/web/module.star"
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if handed < tt.least || handed > tt.most || last != fmt.Sprintf("web=%d", tt.edits) {
					t.Errorf("%d hand-overs, the last is %s", handed, last)
				}
				if worst > 2*time.Second {
					t.Errorf("an edit has waited %s", worst)
				}
			})
		})
	}
}

// A file system that tells nothing is read every ten seconds, without a word while
// nothing changes.
func TestPoll(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		put(t, dir+"/web/module.star", "1")
		f := watch(t, dir, func(o *Options) { o.notifier, o.Poll, o.Quiet, o.MaxWait = deaf{}, 0, 0, 0 })
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(f.seen) > 0 {
			t.Fatalf("told %s", <-f.seen)
		}
		put(t, dir+"/web/module.star", "2")
		began := time.Now()
		if got := <-f.seen; got != "web=2" || time.Since(began) > 10*time.Second {
			t.Errorf("told %s after %s", got, time.Since(began))
		}
		// A moment without the folder is no failure.
		must(t, os.Rename(dir+"/web", dir+"/.away"))
		time.Sleep(9 * time.Second)
		must(t, os.Rename(dir+"/.away", dir+"/web"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.seen) > 0 {
			t.Errorf("told %s", <-f.seen)
		}
	})
}

// An error of a module is in its tree, not an error of all: a link that leads out
// of the tree, a file that is too large.
func TestBrokenModulesAreHandedOver(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside+"/module.star", "1")
	put(t, dir+"/web/module.star", "1")
	put(t, dir+"/shop/module.star", "1")
	f := watch(t, dir)
	must(t, os.RemoveAll(dir+"/web"))
	must(t, os.Symlink(outside, dir+"/web"))
	f.await("shop=1 web=broken", "shop=1")
	must(t, os.Remove(dir+"/web"))
	must(t, os.Symlink("nowhere", dir+"/web"))
	f.await("shop=1 web=broken", "shop=1")
	put(t, dir+"/shop/module.star", strings.Repeat("x", 5<<20))
	f.await("shop=broken web=broken", "shop=")
	must(t, os.Remove(dir+"/web"))
	put(t, dir+"/web/module.star", "2")
	put(t, dir+"/shop/module.star", "2")
	f.await("shop=2 web=2", "shop=")
}

// Changes are heard of in each of several folders.
func TestSeveralFolders(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	put(t, a+"/web/module.star", "1")
	put(t, b+"/shop/module.star", "1")
	f := watch(t, a+":"+b)
	put(t, a+"/web/module.star", "2")
	f.await("shop=1 web=2", "shop=1 web=")
	put(t, b+"/shop/module.star", "2")
	f.await("shop=2 web=2", "shop= web=2")
}

// A tree over the limits is refused as a whole, and read to the limit only.
func TestTooLargeTree(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/web/module.star", "1")
	f := watch(t, dir, func(o *Options) { o.Tree = tree.Options{MaxBytes: 1 << 10, MaxFiles: 20} })
	put(t, dir+"/web/data", strings.Repeat("x", 2<<10))
	f.await("error: modules folder "+dir+": more than 1024 bytes in all files, at web/data: is this the right folder?", "web=")
	must(t, os.Remove(dir+"/web/data"))
	f.await("web=1")
}

// Files beside the tree count like those in it, whether they are there or not.
func TestFilesBesideTheTree(t *testing.T) {
	dir, beside := t.TempDir(), t.TempDir()
	put(t, dir+"/web/module.star", "1")
	put(t, beside+"/a.yaml", "1")
	f := watch(t, dir, func(o *Options) { o.Digest, o.Files = "", []string{beside + "/a.yaml", beside + "/later/b.yaml"} })
	f.await("web=1")
	put(t, beside+"/other.yaml", "1")
	relinked := beside + "/a.next"
	put(t, relinked, "2")
	must(t, os.Rename(relinked, beside+"/a.yaml"))
	f.await("web=1")
	put(t, beside+"/later/b.yaml", "1")
	f.await("web=1")
	put(t, beside+"/later/b.yaml", "2")
	f.await("web=1")
	must(t, os.Remove(beside+"/a.yaml"))
	f.await("web=1")
	put(t, dir+"/web/module.star", "2")
	f.await("web=2", "web=")
}

func TestALargeTreeIsReadLessOftenWhereChangesAreHeardOf(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		blind bool
		want  time.Duration
	}{
		{5 * time.Millisecond, false, 10 * time.Second},
		{100 * time.Millisecond, false, 50 * time.Second},
		{100 * time.Millisecond, true, 10 * time.Second},
		{time.Minute, false, maxPoll},
	} {
		if got := pollAfter(10*time.Second, c.took, c.blind); got != c.want {
			t.Errorf("after a look of %s, blind %v: %s, want %s", c.took, c.blind, got, c.want)
		}
	}
}
