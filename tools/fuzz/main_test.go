package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLate(t *testing.T) {
	for _, tt := range []struct {
		name, out string
		want      bool
	}{
		{"late", "fuzz: elapsed: 30s, execs: 5 (0/sec)\n--- FAIL: FuzzX (30.11s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\tx/y\t30.2s\n", true},
		{"a finding", "--- FAIL: FuzzX (0.02s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: no\n    \n    Failing input written to testdata/fuzz/FuzzX/582528ddfad69eb5\n    To re-run:\n    go test -run=FuzzX/582528ddfad69eb5\nFAIL\n", false},
		{"a finding that says the same", "--- FAIL: FuzzX (0.02s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzX/5\nFAIL\n", false},
		{"a seed", "--- FAIL: FuzzX (0.02s)\n    --- FAIL: FuzzX/seed#0 (0.00s)\n        x_test.go:9: context deadline exceeded\nFAIL\n", false},
		{"a worker that died", "--- FAIL: FuzzX (1.02s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\n    Failing input written to testdata/fuzz/FuzzX/5\nFAIL\n", false},
		{"no compile", "# x/y\n./x.go:1: undefined: z\nFAIL\tx/y [build failed]\n", false},
	} {
		if got := late(tt.out); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestTargets(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"a/x_test.go": "package a\n\nfunc FuzzB(f *testing.F) {}\nfunc FuzzA(f *testing.F) {}\n// func FuzzNot(\n",
		"x_test.go":   "package x\n\nfunc FuzzC(f *testing.F) {}\n",
		"x.go":        "package x\n\nfunc FuzzNo(f *testing.F) {}\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all, err := targets(dir)
	if want := []target{{"./.", "FuzzC"}, {"./a", "FuzzA"}, {"./a", "FuzzB"}}; err != nil || !slices.Equal(all, want) {
		t.Fatalf("got %v, %v; want %v", all, err, want)
	}
	if got, err := pick(all, []string{"FuzzB", "Fuzz"}); err != nil || len(got) != 3 || got[0].name != "FuzzB" {
		t.Errorf("picked %v, %v", got, err)
	}
	if _, err := pick(all, []string{"FuzzD"}); err == nil {
		t.Error("a target that is not there was picked")
	}
}
