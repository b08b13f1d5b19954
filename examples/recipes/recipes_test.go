package recipes

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// Each folder is in one group of the page, says which problem it solves, and has a test.
func TestRecipes(t *testing.T) {
	folders, err := fs.ReadDir(FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	names := Names()
	for i, name := range names {
		if i > 0 && names[i-1] == name {
			t.Errorf("%s is in two groups", name)
		}
	}
	if len(folders) < 20 || len(names) != len(folders) {
		t.Errorf("there are %d folders and %d names in groups, want as many, and 20", len(folders), len(names))
	}
	for _, folder := range folders {
		if !slices.Contains(names, folder.Name()) {
			t.Errorf("%s is in no group", folder.Name())
		}
		r, err := Read(folder.Name())
		if err != nil {
			t.Error(err)
			continue
		}
		tests, err := fs.Glob(FS, r.Name+"/hooks/*_test.star")
		if err != nil || len(tests) == 0 || len(r.Hooks) == 0 {
			t.Errorf("%s has %d hooks and %d tests (%v)", r.Name, len(r.Hooks), len(tests), err)
		}
		if !strings.HasSuffix(r.Problem, ".") || !strings.HasSuffix(r.Solution, ".") && !strings.HasSuffix(r.Solution, ".)") {
			t.Errorf("%s: problem and solution are sentences", r.Name)
		}
	}
}
