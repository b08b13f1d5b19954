package fetch

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/tree"
)

// work has the cache fetch until stop, or the end of the test: its folder goes only when nobody writes there.
func work(t *testing.T, c *Cache) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// cached reads a tree with a cache, and says which charts its modules have: see charts.
func cached(t *testing.T, dir string, c *Cache) string {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{Archives: c.Archive})
	if err != nil {
		t.Fatal(err)
	}
	return chartsOf(t, read)
}

// until reads the tree again with each change of the cache, until it is so.
func until(t *testing.T, dir string, c *Cache, so func(charts string) bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		got := cached(t, dir, c)
		if so(got) {
			return got
		}
		select {
		case <-c.Changed():
		case <-ctx.Done():
			t.Fatalf("the charts are still %s", got)
		}
	}
}

// old has a file look as if it had been there for a month.
func old(t *testing.T, dir, name string) {
	t.Helper()
	then := time.Now().Add(-30 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
		t.Fatal(err)
	}
}

// A repository that is down keeps those modules waiting whose archives are not there; once it is
// up they have their charts, and the next process has them from the start.
func TestCache(t *testing.T) {
	var down, requests, indexes atomic.Int32
	srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		if r.URL.Path == "/index.yaml" {
			indexes.Add(1)
		}
		if down.Load() > 0 {
			w.WriteHeader(http.StatusForbidden) // which nobody tries again at once
		}
		return down.Load() > 0
	}, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x"), "other/module.star": "module()\n"})
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	down.Store(1)
	indexes.Store(0)
	o := CacheOptions{Dir: filepath.Join(t.TempDir(), "charts"), Retry: 20 * time.Millisecond, Wait: time.Nanosecond, Transport: srv.Client().Transport, Log: zerolog.Nop()}
	c := NewCache(o)
	if got := cached(t, dir, c); !strings.Contains(got, "redis-1.2.0.tgz of "+srv.URL+"/redis: it is being fetched") || !strings.HasSuffix(got, "\nother: none") {
		t.Errorf("got %s", got)
	}
	stop := work(t, c)
	until(t, dir, c, func(got string) bool { return strings.Contains(got, "it cannot be fetched, and is tried again: ") })
	down.Store(0)
	until(t, dir, c, func(got string) bool { return strings.HasSuffix(got, "web: redis 1.2.0") })
	stop()

	// The index was not asked for: the lock says where the archive is.
	if indexes.Load() != 0 {
		t.Errorf("the index was asked for %d times", indexes.Load())
	}

	// Another process, and nobody to ask.
	down.Store(1)
	requests.Store(0)
	again := NewCache(o)
	if got := cached(t, dir, again); got != "other: none\nweb: redis 1.2.0" || requests.Load() > 0 {
		t.Errorf("got %s, after %d requests", got, requests.Load())
	}
	// Bytes that are broken on the disk count for nothing.
	kept, err := filepath.Glob(filepath.Join(o.Dir, "*.tgz"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	writeFile(t, o.Dir, filepath.Base(kept[0]), "x")
	if got := cached(t, dir, again); !strings.Contains(got, "it is being fetched") {
		t.Errorf("got %s", got)
	}
}

// Other bytes than the lock names are one error; an archive that hangs keeps no other waiting.
func TestCacheOfOtherBytes(t *testing.T) {
	hang := newRepository(t, func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	good := newRepository(t, nil, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(good.URL+"/redis", "1.x"), "zoo/module.star": named(good.URL+"/redis", "1.x")})
	if got := fetched(t, dir, good); got == "" {
		t.Fatal("nothing was fetched")
	}
	lock, err := tree.ParseLock([]byte(filesIn(t, dir)[tree.LockFile]))
	if err != nil {
		t.Fatal(err)
	}
	wrong, slow := lock["web"], lock["web"]
	slow.ArchiveURL = ""
	wrong.Digest = "sha256:" + strings.Repeat("0", 64)
	slow.URL, slow.Digest = hang.URL+"/redis", "sha256:"+strings.Repeat("1", 64)
	c := NewCache(CacheOptions{Dir: t.TempDir(), Retry: 20 * time.Millisecond, Wait: time.Nanosecond, Transport: good.Client().Transport, Log: zerolog.Nop()})
	// Nothing is tried before all three are asked for: a machine at work may end a try before its reader looks.
	for _, l := range []tree.Locked{slow, wrong, lock["web"]} {
		if _, err := c.Archive(l); err == nil || !strings.Contains(err.Error(), "it is being fetched") {
			t.Errorf("got %v", err)
		}
	}
	work(t, c)
	answers := func(l tree.Locked, want string) bool {
		_, err := c.Archive(l)
		return want == "" && err == nil || err != nil && want != "" && strings.Contains(err.Error(), want)
	}
	within, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for !answers(lock["web"], "") || !answers(wrong, "has sent other bytes for version 1.2.0 than are asked for") {
		select {
		case <-c.Changed():
		case <-within.Done():
			t.Fatal("no answer")
		}
	}
	if !answers(slow, "it is being fetched") {
		t.Error("the server that hangs has answered")
	}
}

// The folder holds what the tree names that is in force, and the one before it, and no more that is old.
func TestCacheKeeps(t *testing.T) {
	c := NewCache(CacheOptions{Dir: t.TempDir(), Wait: time.Nanosecond, Log: zerolog.Nop()})
	names := func(digits ...string) *tree.Tree {
		var of tree.Tree
		for _, d := range digits {
			of.Modules = append(of.Modules, &tree.Module{Locked: &tree.Locked{Digest: "sha256:" + d}})
		}
		return &of
	}
	for _, name := range []string{"a.tgz", "b.tgz", "c.tgz", ".d.tgz.new"} {
		writeFile(t, c.o.Dir, name, "x")
		old(t, c.o.Dir, name)
	}
	writeFile(t, c.o.Dir, "young.tgz", "x")
	for _, step := range []struct {
		tree *tree.Tree
		want string
	}{
		{names("a", "b"), "a.tgz b.tgz young.tgz"},
		{names("b"), "a.tgz b.tgz young.tgz"},
		{names("b"), "b.tgz young.tgz"},
		{names(), "b.tgz young.tgz"},
		{names(), "young.tgz"},
	} {
		c.Keep(step.tree)
		files, err := os.ReadDir(c.o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Name())
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
	// A wish ends with the lock that named it.
	l := tree.Locked{URL: "https://charts.example.com/redis", Version: "1.2.0", Digest: "sha256:0"}
	if _, err := c.Archive(l); err == nil || len(c.wishes) != 1 {
		t.Errorf("got %v, and %d wishes", err, len(c.wishes))
	}
	c.Keep(&tree.Tree{Modules: []*tree.Module{{Locked: &l}}})
	if len(c.wishes) != 1 {
		t.Error("the wish is gone")
	}
	c.Keep(names())
	if len(c.wishes) != 0 {
		t.Error("the wish is still there")
	}
}

// A reader waits a while for an archive that comes, once: not for each one of a server that hangs.
func TestCacheWaits(t *testing.T) {
	good := newRepository(t, nil, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(good.URL+"/redis", "1.x")})
	if got := fetched(t, dir, good); got == "" {
		t.Fatal("nothing was fetched")
	}
	if err := os.RemoveAll(filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	c := NewCache(CacheOptions{Dir: t.TempDir(), Wait: time.Minute, Transport: good.Client().Transport, Log: zerolog.Nop()})
	work(t, c)
	if got := cached(t, dir, c); got != "web: redis 1.2.0" {
		t.Errorf("got %s", got)
	}

	synctest.Test(t, func(t *testing.T) {
		const wait = 5 * time.Second
		c := NewCache(CacheOptions{Dir: t.TempDir(), Wait: wait, Transport: hanging{}, Log: zerolog.Nop()})
		work(t, c)
		began := time.Now()
		for i := range 3 {
			l := tree.Locked{URL: "https://far/redis", Version: fmt.Sprintf("1.2.%d", i), Digest: "sha256:" + strings.Repeat("0", 64)}
			if _, err := c.Archive(l); err == nil || !strings.Contains(err.Error(), "it is being fetched") {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(began); took != wait {
			t.Errorf("the reader went on after %s", took)
		}
	})
}

// hanging answers no request.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
