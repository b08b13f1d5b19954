package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, dir, tree string) *marks {
	t.Helper()
	m, err := openMarks(dir, tree)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAHookThatTakesTheProcessWithItIsQuarantined(t *testing.T) {
	dir := t.TempDir()
	for range quarantineAfter {
		m := open(t, dir, "tree")
		if why := m.quarantined("web/a"); why != "" {
			t.Fatalf("too early: %s", why)
		}
		if err := m.begin("web/a"); err != nil { // and the process is gone
			t.Fatal(err)
		}
	}
	m := open(t, dir, "tree")
	if why := m.quarantined("web/a"); !strings.Contains(why, "2 times in a row") {
		t.Errorf("got %q", why)
	}
	if why := m.quarantined("web/b"); why != "" {
		t.Errorf("another hook: %s", why)
	}
	if why := open(t, dir, "other tree").quarantined("web/a"); why != "" {
		t.Errorf("a changed tree: %s", why)
	}
}

func TestASuccessClearsTheHook(t *testing.T) {
	dir := t.TempDir()
	crash := func() {
		if err := open(t, dir, "tree").begin("web/a"); err != nil {
			t.Fatal(err)
		}
	}
	crash()
	m := open(t, dir, "tree")
	for _, err := range []error{m.begin("web/a"), m.end("web/a", true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	crash()
	if why := open(t, dir, "tree").quarantined("web/a"); why != "" {
		t.Errorf("a hook that ran well in between: %s", why)
	}
}

func TestACleanStopLeavesNoMarks(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, "tree")
	for _, err := range []error{m.begin("web/a"), m.begin("web/a"), m.end("web/a", false), m.begin("web/b"), m.clear()} {
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
		m := open(t, dir, "tree")
		for _, err := range []error{m.begin("web/a"), m.begin("web/a"), m.end("web/a", false), m.end("web/a", false), m.begin("web/a"), m.end("web/a", false)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if why := m.quarantined("web/a"); why != "" {
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
	if m := open(t, dir, "tree"); len(m.unclean) > 0 {
		t.Errorf("counts %v", m.unclean)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openMarks(file, "tree"); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("a state folder that is a file: %v", err)
	}
}

// A run that could not be marked is none: the next one is marked again.
func TestARunThatCannotBeMarkedCountsForNothing(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, "tree")
	if err := os.RemoveAll(m.dir); err != nil {
		t.Fatal(err)
	}
	if err := m.begin("web/a"); err == nil {
		t.Fatal("marked in a folder that is not there")
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.begin("web/a"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(m.file(m.mark("web/a"), "running")); err != nil || len(data) == 0 || data[0] != markRunning {
		t.Errorf("the run that follows is not marked: %q, %v", data, err)
	}
}
