package record

import (
	"bytes"
	"strings"
	"testing"
)

// The files of a run are enough to open it in another folder; a part that is gone, and a name that is no file of a
// run, are errors.
func TestABundleIsARun(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nodes("a", "b", strings.Repeat("c", 50_000))))
	put(t, s, m.run(t, nodes("other"), at(1)))
	id := "test-" + ids(t, s)[1]
	packed, err := Bundle(s.o.Dir, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) < 2 || len(packed) >= len(files(t, s)) {
		t.Errorf("%d of %d files are in it", len(packed), len(files(t, s)))
	}
	dir := t.TempDir()
	if err := Unpack(dir, packed); err != nil {
		t.Fatal(err)
	}
	want, err1 := Load(s.o.Dir, id, s.key)
	got, err2 := Load(dir, id, s.key)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if got.ID != want.ID || !bytes.Equal(got.outcome, want.outcome) || len(got.Sources) != len(want.Sources) {
		t.Errorf("it is %+v, want %+v", got.Header, want.Header)
	}
	for _, name := range []string{"../x.run", "test-1.run/x", "x.part", "key", ".new-test-1.run"} {
		if err := Unpack(dir, map[string][]byte{name: nil}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for name := range packed {
		if strings.HasSuffix(name, partSuffix) {
			s.remove(name)
			break
		}
	}
	if _, err := Bundle(s.o.Dir, id); err == nil || !strings.Contains(err.Error(), "may have made room") {
		t.Errorf("without a part: %v", err)
	}
}
