package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/hook"
)

// ids are those of the runs in a folder, the newest first.
func ids(t testing.TB, s *Store) []string {
	t.Helper()
	headers, _, err := List(s.o.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range headers {
		out = append(out, strings.TrimPrefix(h.ID, "test-"))
	}
	return out
}

func files(t testing.TB, s *Store) []string {
	t.Helper()
	list, err := os.ReadDir(s.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range list {
		out = append(out, f.Name())
	}
	return out
}

// at has a run begin so many seconds later.
func at(seconds int) func(*hook.Request) {
	return func(r *hook.Request) { r.Now = r.Now.Add(time.Duration(seconds) * time.Second) }
}

func TestOneSnapshotIsKeptOnce(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("node-%03d", i)
	}
	all := nodes(names...)
	put(t, s, m.run(t, all))
	first := s.bytes
	for i := range 99 {
		put(t, s, m.run(t, slices.Clone(all), at(i+1)))
	}
	if more := s.bytes - first; more > 100*2*block {
		t.Errorf("99 runs more take %d bytes more than %d", more, first)
	}
	// Another object changes a part of it.
	parts := len(s.parts)
	changed := slices.Clone(all)
	changed[500] = nodes("another")[0]
	put(t, s, m.run(t, changed, at(200)))
	if n := len(s.parts) - parts; n > 4 {
		t.Errorf("one object has changed %d parts of %d", n, parts)
	}
	// And so does one that is gone, wherever it was.
	parts = len(s.parts)
	put(t, s, m.run(t, append(slices.Clone(changed[:10]), changed[11:]...), at(201)))
	if n := len(s.parts) - parts; n > 4 {
		t.Errorf("an object that is gone has changed %d parts", n)
	}
	for _, run := range []uint64{1, 100, 101, 102} {
		r := opened(t, s, run)
		if got := r.request.Snapshots["nodes"]; len(got) != 1000-int(run)/102 {
			t.Errorf("run %d has %d objects", run, len(got))
		}
		if !replayed(t, r, ReplayOptions{}).Same {
			t.Errorf("run %d came to something else", run)
		}
	}
}

// Hooks and modules that are gone after a reload do not stay in memory.
func TestWhatNoRunUsesIsForgotten(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	steady := nodes("a", "b")
	for i := range 5 * maxIdle {
		one := m.run(t, nodes("c"), func(r *hook.Request) {
			decl, h, mod := *r.Hook.HookDecl, *r.Hook, *r.Module
			decl.ID = fmt.Sprintf("m%d/f", i)
			h.HookDecl, mod.Name = &decl, fmt.Sprintf("m%d", i)
			r.Hook, r.Module = &h, &mod
		})
		other := m.run(t, steady)
		one.Generation, other.Generation = i, i
		put(t, s, one)
		put(t, s, other)
	}
	if len(s.pack.lists) > maxIdle+2 || len(s.pack.sources) > maxIdle+2 {
		t.Errorf("%d snapshots and the files of %d modules are in memory", len(s.pack.lists), len(s.pack.sources))
	}
	if l := s.pack.lists[m.g.Modules["m"].Hooks[0].ID+" nodes"]; l == nil || l.used != 5*maxIdle-1 {
		t.Error("what every run uses is forgotten")
	}
}

func TestTheOldestGoFirst(t *testing.T) {
	m := newModule(t, "if ctx.snapshots[\"nodes\"]:\n    fail(\"x\")")
	s := newStore(t, StoreOptions{MaxRuns: 4})
	for i := range 10 {
		var snapshot []starlark.Value
		if i == 2 {
			snapshot = nodes("a")
		}
		put(t, s, m.run(t, snapshot, at(i)))
	}
	// The last that failed stays.
	if got := ids(t, s); !slices.Equal(got, []string{"10", "9", "8", "3"}) {
		t.Errorf("left are %v", got)
	}
	for _, run := range []uint64{3, 8, 10} {
		opened(t, s, run)
	}
	used := map[string]bool{}
	for _, run := range s.runs {
		for _, r := range run.refs {
			used[r.String()] = true
		}
	}
	for _, f := range files(t, s) {
		// Parts of lists are used by these.
		if name, ok := strings.CutSuffix(f, partSuffix); ok && !used[name] && len(s.parts) > 5 {
			t.Errorf("%s is left of runs that are gone", f)
		}
	}
}

func TestSizeIsBounded(t *testing.T) {
	m := newModule(t, "log.info(random.string(500))")
	s := newStore(t, StoreOptions{MaxBytes: 200 << 10})
	for i := range 40 {
		put(t, s, m.run(t, nodes(fmt.Sprint(i)), at(i), func(r *hook.Request) { r.Random = nil }))
	}
	if s.bytes > 200<<10 || len(s.runs) < 5 {
		t.Errorf("%d runs take %d bytes", len(s.runs), s.bytes)
	}
	var sum int64
	for _, f := range files(t, s) {
		data, err := os.ReadFile(s.path(f))
		if err != nil {
			t.Fatal(err)
		}
		sum += sizeOf(len(data))
	}
	if sum != s.bytes {
		t.Errorf("the files take %d bytes, the store thinks %d", sum, s.bytes)
	}
}

func TestOpenClearsUp(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	for i := range 4 {
		put(t, s, m.run(t, nodes("a", "b"), at(i)))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	half := read("test-1.run")
	write("test-1.run", half[:len(half)/4])
	write("test-2.run", strings.Replace(read("test-2.run"), `"format":1,`, `"format":2,`, 1))
	write(tempPrefix+"test-9.run", "half")
	write("test-7.run", read("test-3.run")) // its header names another
	write(strings.Repeat("a", 32)+partSuffix, string(front(partHead(), nil))+"nobody uses it")
	write(strings.Repeat("b", 32)+partSuffix, "broken")
	write("other", "not ours")

	again := newStore(t, s.o)
	if got := ids(t, again); !slices.Equal(got, []string{"4", "3"}) {
		t.Errorf("left are %v", got)
	}
	list := files(t, again)
	if !slices.Contains(list, "other") || len(list) != 3+len(again.parts) {
		t.Errorf("left are %v", list)
	}
	if !replayed(t, opened(t, again, 3), ReplayOptions{}).Same {
		t.Error("run 3 came to something else")
	}
	// It goes on where the other has stopped.
	parts := len(again.parts)
	m2 := newModule(t, "pass")
	m2.runs = 20
	put(t, again, m2.run(t, nodes("a", "b"), at(30)))
	if len(again.parts) != parts {
		t.Errorf("the same parts are kept again: %d, were %d", len(again.parts), parts)
	}
	// With another key nothing of it can be read, so nothing of it stays.
	o := s.o
	o.Key = nil
	if other := newStore(t, o); len(ids(t, other)) != 0 || len(other.parts) != 0 || other.bytes != 0 {
		t.Errorf("left are %v", files(t, other))
	}
}

func TestARunThatCannotBeKeptLeavesNothing(t *testing.T) {
	m, s := newModule(t, "log.info(random.string(5000))"), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil))
	before := files(t, s)
	bad := m.run(t, append(nodes("a"), starlark.Tuple{}), at(1))
	bad.logs = []Line{{Text: "x"}}
	bad.request.Events[0].Result = starlark.NewBuiltin("f", nil)
	if err := s.Put(bad); err == nil {
		t.Error("a function was kept")
	}
	if got := files(t, s); !slices.Equal(got, before) {
		t.Errorf("left are %v, were %v", got, before)
	}
	// A folder that takes nothing any more.
	if err := os.RemoveAll(s.o.Dir); err != nil {
		t.Fatal(err)
	}
	size := s.bytes
	if err := s.Put(m.run(t, nodes("x"), at(2))); err == nil || s.bytes != size {
		t.Errorf("kept nowhere: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nodes("a"), at(1)), m.run(t, nodes("a"), at(2)), m.run(t, nodes("b"), at(3)))
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(s.path("test-1.run"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, id, want string
		key            *Key
		change         func()
	}{
		{"no id", "../x", `"../x" is no id of a run; they look like k3f9-12, see: starling get runs`, s.key, nil},
		{"not there", "test-99", "no run test-99 is kept in " + s.o.Dir + "; see: starling get runs", s.key, nil},
		{"another key", "test-1", "run test-1: it is sealed with key " + s.key.ID() + ", and this is key " + other.ID(), other, nil},
		{"changed", "test-1", "run test-1: it is broken, or sealed with another key", s.key, func() {
			bad := slices.Clone(data)
			bad[len(bad)-1] ^= 1
			write(t, s.path("test-1.run"), bad)
		}},
		{"header changed", "test-1", "run test-1: it is broken, or sealed with another key", s.key, func() {
			write(t, s.path("test-1.run"), []byte(strings.Replace(string(data), `"attempt":1`, `"attempt":2`, 1)))
		}},
		{"half", "test-1", "run test-1: its record cannot be read: the file is broken", s.key, func() { write(t, s.path("test-1.run"), data[:40]) }},
		{"another version", "test-1", "run test-1 is a record of another version: starling v1 wrote it in format 7, and this one reads format 1; use that starling", s.key, func() {
			write(t, s.path("test-1.run"), []byte(strings.Replace(string(data), `"format":1,`, `"format":7,`, 1)))
		}},
		{"a part under another name", "test-2", "run test-2: a part of its record stands under the name of another", s.key, func() {
			var parts []string
			for _, f := range files(t, s) {
				if strings.HasSuffix(f, partSuffix) {
					parts = append(parts, f)
				}
			}
			for i := range parts {
				if err := os.Rename(s.path(parts[i]), s.path("x"+parts[i])); err != nil {
					t.Fatal(err)
				}
			}
			for i := range parts {
				if err := os.Rename(s.path("x"+parts[i]), s.path(parts[(i+1)%len(parts)])); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"a part is gone", "test-3", "run test-3: a part of its record is not there; it may have made room for another run meanwhile", s.key, func() {
			parts, err := filepath.Glob(s.path("*" + partSuffix))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				if err := os.Remove(p); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		if tt.change != nil {
			tt.change()
		}
		if _, err := Load(s.o.Dir, tt.id, tt.key); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	if err := Check(s.o.Dir, "test-1"); !errors.As(err, new(*VersionError)) {
		t.Error(err)
	}
	if headers, others, err := List(s.o.Dir, s.key); err != nil || others != 1 || len(headers) != 2 {
		t.Errorf("%d headers, %d of others, %v", len(headers), others, err)
	}
	if headers, _, err := List(filepath.Join(s.o.Dir, "none"), nil); err != nil || len(headers) != 0 {
		t.Error(headers, err)
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Files on disk tell nothing to those without the key.
func TestNothingIsPlainOnDisk(t *testing.T) {
	m, s := newModule(t, asksAll), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nodes("node-secret-name")))
	for _, f := range files(t, s) {
		data, err := os.ReadFile(s.path(f))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{secretText, "aHVzaC1odXNo", "node-secret-name", "k8s.apply", "password", "api.example.com"} {
			if strings.Contains(string(data), text) {
				t.Errorf("%s holds %q", f, text)
			}
		}
	}
	// The name of a part does not follow from what it holds alone.
	other := newStore(t, StoreOptions{})
	put(t, other, newModule(t, asksAll).run(t, nodes("node-secret-name")))
	for _, f := range files(t, other) {
		if strings.HasSuffix(f, partSuffix) && slices.Contains(files(t, s), f) {
			t.Errorf("%s has the same name under two keys", f)
		}
	}
}

func TestParseKey(t *testing.T) {
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{k.Bytes(), []byte(base64Of(k.Bytes())), []byte(base64Of(k.Bytes()) + "\n")} {
		if got, err := ParseKey(data); err != nil || got.ID() != k.ID() {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := ParseKey([]byte("short")); err == nil || err.Error() != "this is no key of records: it has 5 bytes, want 32, or these in base64" {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	a, b, c := Process(now, "a"), Process(now.Add(time.Second), "a"), Process(now, "b")
	if a == b || a == c || len(a) != 4 || !checkID(ID(a, 1)) || !checkID(ID(a, Asked|1)) || ID(a, Asked|1) != a+"-a1" {
		t.Errorf("%q, %q, %q", a, b, c)
	}
	for _, bad := range []string{"", "a", "-1", "a-", "a-x", "../a-1", "a/b-1", "A-1", strings.Repeat("a", 50) + "-1", "a--1", "a-+1"} {
		if checkID(bad) {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}
