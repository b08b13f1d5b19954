package live

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// countedFile counts the writes of a book.
type countedFile struct {
	bookFile
	writes int
}

func (f *countedFile) WriteAt(p []byte, off int64) (int, error) {
	f.writes++
	return f.bookFile.WriteAt(p, off)
}

// A list of a hundred thousand objects has its filters marked as long as they go on, and not each object.
func TestAListIsMarkedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const code = "code"
		filters := []string{"the filter of web/a", "the filter of web/b"}
		m := open(t, t.TempDir())
		evaluate := func(what string) (ended func(bool)) {
			t.Helper()
			ended, err := m.Evaluating(what, code)
			if err != nil {
				t.Fatal(err)
			}
			return ended
		}
		marked := func(what string, want ...string) {
			t.Helper()
			left, err := readMarks(m.book.path)
			want = slices.Clone(want)
			for i := range want {
				want[i] = markOf(want[i], code)
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(left)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: marked are %v, not %v (%v)", what, got, want, err)
			}
		}
		for _, what := range filters {
			evaluate(what)(true)
		}
		time.Sleep(2 * restsFor)
		m.mu.Lock() // a timer may be at it
		file := &countedFile{bookFile: m.book.file}
		m.book.file = file
		m.mu.Unlock()
		for range 50_000 {
			for _, what := range filters {
				evaluate(what)(true)
			}
		}
		m.mu.Lock()
		writes := file.writes
		m.mu.Unlock()
		if writes > 4 {
			t.Errorf("%d writes", writes)
		}
		ended := evaluate(filters[1])
		marked("as it is called", filters...)
		time.Sleep(2 * restsFor)
		marked("the other one has ended", filters[1])
		ended(true)
		if err := m.begin("web/c", code); err != nil {
			t.Fatal(err)
		}
		marked("a hook begins", "web/c")
		if err := m.end("web/c", code, true); err != nil {
			t.Fatal(err)
		}
		marked("it has ended")

		// An edit has the mark go at once, as another one may get its record.
		evaluate(filters[0])(true)
		other, err := m.Evaluating(filters[0], "other code")
		if err != nil {
			t.Fatal(err)
		}
		other(true)
		time.Sleep(2 * restsFor)
		marked("after an edit")
		evaluate(filters[1])(true)
		if err := m.Clear(); err != nil {
			t.Fatal(err)
		}
		evaluate(filters[0]) // a review, as the process ends
		time.Sleep(2 * restsFor)
		marked("a clean end", filters[0])
	})
}
