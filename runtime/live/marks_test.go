package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string) *Marks {
	t.Helper()
	m, err := OpenMarks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAHookThatTakesTheProcessWithItIsQuarantined(t *testing.T) {
	dir := t.TempDir()
	for range quarantineAfter {
		m := open(t, dir)
		if why := m.quarantined("web/a", "code"); why != "" {
			t.Fatalf("too early: %s", why)
		}
		if err := m.begin("web/a", "code"); err != nil { // and the process is gone
			t.Fatal(err)
		}
	}
	m := open(t, dir)
	if why := m.quarantined("web/a", "code"); !strings.Contains(why, "2 times in a row") {
		t.Errorf("got %q", why)
	}
	if why := m.quarantined("web/b", "code"); why != "" {
		t.Errorf("another hook: %s", why)
	}
	if why := m.quarantined("web/a", "other code"); why != "" {
		t.Errorf("a changed hook: %s", why)
	}
}

func TestASuccessClearsTheHook(t *testing.T) {
	dir := t.TempDir()
	crash := func() {
		if err := open(t, dir).begin("web/a", "code"); err != nil {
			t.Fatal(err)
		}
	}
	crash()
	m := open(t, dir)
	for _, err := range []error{m.begin("web/a", "code"), m.end("web/a", "code", true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	crash()
	if why := open(t, dir).quarantined("web/a", "code"); why != "" {
		t.Errorf("a hook that ran well in between: %s", why)
	}
}

func TestACleanStopLeavesNoMarks(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	for _, err := range []error{m.begin("web/a", "code"), m.begin("web/a", "code"), m.end("web/a", "code", false), m.begin("web/b", "code"), m.Clear()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(files) > 0 {
		t.Errorf("left behind: %v %v", files, err)
	}
}

// A process that is killed while a hook does not run has nothing against it.
func TestAHookThatDoesNotRunIsNotMarked(t *testing.T) {
	dir := t.TempDir()
	for range 2 * quarantineAfter {
		m := open(t, dir)
		for _, err := range []error{m.begin("web/a", "code"), m.begin("web/a", "code"), m.end("web/a", "code", false), m.end("web/a", "code", false), m.begin("web/a", "code"), m.end("web/a", "code", false)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if why := m.quarantined("web/a", "code"); why != "" {
			t.Fatalf("got %q", why)
		}
	}
}

func TestMarksReadWhatTheyDidNotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"x.unclean": "many", "y.unclean": "-5", "z": "", "w.other": "1"} {
		if err := os.WriteFile(filepath.Join(dir, "runs", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if m := open(t, dir); len(m.unclean) > 0 {
		t.Errorf("counts %v", m.unclean)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMarks(file); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("a state folder that is a file: %v", err)
	}
}

// A run that could not be marked is none: the next one is marked again.
func TestARunThatCannotBeMarkedCountsForNothing(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	if err := os.RemoveAll(m.dir); err != nil {
		t.Fatal(err)
	}
	if err := m.begin("web/a", "code"); err == nil {
		t.Fatal("marked in a folder that is not there")
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.begin("web/a", "code"); err != nil {
		t.Fatal(err)
	}
	if left, err := readMarks(m.book.path); err != nil || !left[markOf("web/a", "code")] {
		t.Errorf("the run that follows is not marked: %v, %v", left, err)
	}
}

// However much there is to evaluate: a file is opened once, and records of code that is gone
// are used again.
func TestMarksAreOneFile(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	hook := func(i int) string { return fmt.Sprintf("app-%d/a", i) }
	for i := range 1000 {
		for _, err := range []error{m.begin(hook(i), "code"), m.end(hook(i), "code", true)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("1000 hooks have run, there are %d files, %v", len(files), err)
	}
	for i := range 1000 { // edited
		ended, err := m.Evaluating(hook(i), "other code")
		if err != nil {
			t.Fatal(err)
		}
		ended(true)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() > 1001*recordSize {
		t.Errorf("an edit of each took new records: %d bytes, %v", info.Size(), err)
	}
	if err := m.begin(hook(7), "newest"); err != nil { // and the process is gone
		t.Fatal(err)
	}
	if left := open(t, dir).unclean; len(left) != 1 || left[markOf(hook(7), "newest")] != 1 {
		t.Errorf("found afterwards: %v", left)
	}
}

// A record that is not whole, or nobody's, counts for nothing.
func TestABookThatIsBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), bookName)
	whole := fmt.Sprintf("%-255s\n", "1 "+markOf("web/a", "code")+" web/a")
	broken := fmt.Sprintf("%-255s\n", "1 short web/a")
	for text, want := range map[string]int{"": 0, broken + whole: 1, whole[:40]: 0, whole + whole[:40]: 1, strings.Repeat("\x00", recordSize) + whole: 1} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if left, err := readMarks(path); err != nil || len(left) != want {
			t.Errorf("%q: %v, %v", text, left, err)
		}
	}
}

// It measures what a mark costs per call of a filter, and per run.
func BenchmarkMarks(b *testing.B) {
	m, err := OpenMarks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ended, err := m.Evaluating("the filter of web/a", "code")
		if err != nil {
			b.Fatal(err)
		}
		ended(true)
	}
}

// A filter that passes one object and takes the process with it at another one is
// quarantined; what ended as it should is not.
func TestAFilterThatKillsAtSomeObjects(t *testing.T) {
	const what, code = "the filter of web/a", "code"
	dir := t.TempDir()
	evaluate := func(m *Marks) (ended func(ok bool)) {
		t.Helper()
		ended, err := m.Evaluating(what, code)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	dies := func() {
		m := open(t, dir)
		evaluate(m)(true)
		evaluate(m) // and the process ends
	}
	dies()
	m := open(t, dir)
	evaluate(m)(true)
	if err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	dies()
	if why := open(t, dir).quarantined(what, code); why != "" {
		t.Errorf("after a process that ended as it should: %s", why)
	}
	dies()
	if _, err := open(t, dir).Evaluating(what, code); err == nil || !strings.Contains(err.Error(), "quarantined: 2 times in a row") {
		t.Errorf("got %v", err)
	}
}

// A file of the same name and another digest leaves no file open.
func TestAnEditLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir)
	for _, digest := range []string{"1", "2", "3", "1"} {
		ended, err := m.Evaluating("section web of the ConfigMap", digest)
		if err != nil {
			t.Fatal(err)
		}
		ended(true)
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(files) != 1 || len(m.running) != 1 || len(m.latest) != 1 {
		t.Errorf("there are %v (%v), %v", files, err, m.running)
	}
	during, err := m.Evaluating("section web of the ConfigMap", "4")
	if err != nil {
		t.Fatal(err)
	}
	after, err := m.Evaluating("section web of the ConfigMap", "5")
	if err != nil {
		t.Fatal(err)
	}
	during(true)
	after(true)
	if len(m.running) != 1 {
		t.Errorf("there are %v", m.running)
	}
}

// The count of what is not there any more is forgotten in the end, that of what is
// quarantined stays.
func TestOldCountsAreForgotten(t *testing.T) {
	dir := t.TempDir()
	for range quarantineAfter {
		m := open(t, dir)
		for _, what := range []string{"web/here", "web/gone"} {
			if err := m.begin(what, "code"); err != nil {
				t.Fatal(err)
			}
		}
	}
	old := time.Now().Add(-2 * forgetAfter)
	age := func(m *Marks) {
		for _, what := range []string{"web/here", "web/gone"} {
			if err := os.Chtimes(m.file(markOf(what, "code")), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := open(t, dir)
	age(m)
	if m.quarantined("web/here", "code") == "" {
		t.Error("it is not quarantined")
	}
	m = open(t, dir)
	if m.quarantined("web/here", "code") == "" || m.quarantined("web/gone", "code") != "" {
		t.Errorf("counts %v", m.unclean)
	}
	if _, err := os.Stat(m.file(markOf("web/gone", "code"))); !os.IsNotExist(err) {
		t.Errorf("its file stays: %v", err)
	}
}

// A process that ends because its engine hangs leaves the mark of what the engine is at.
func TestAHangCounts(t *testing.T) {
	f := newFixture(t, map[string]string{"web/module.star": "module()\n"})
	d := f.driver
	if err := d.marks.begin("section web of the ConfigMap", "text"); err != nil {
		t.Fatal(err)
	}
	d.pulse.base = time.Now().Add(-2 * hungAfter)
	d.pulse.began.Store(1)
	d.stop(d.term.Load(), time.Second, 0)
	d.clearMarks()
	if err := d.marks.Clear(); err != nil { // as the command does at its end
		t.Fatal(err)
	}
	if n := open(t, f.dir).unclean[markOf("section web of the ConfigMap", "text")]; n != 1 {
		t.Errorf("it is counted %d times", n)
	}
}

// A disk that is full keeps no process from its work.
func TestCountsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	m, err := OpenMarks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.begin("web/a", "1"); err != nil {
		t.Fatal(err)
	}
	// As little can be written there as on a disk that is full.
	if err := os.Mkdir(m.file(markOf("web/a", "1"))+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := OpenMarks(dir)
	if err != nil || next.Uncounted() == nil || next.unclean[markOf("web/a", "1")] != 1 {
		t.Errorf("%v, %v, %v", err, next.Uncounted(), next.unclean)
	}
}
