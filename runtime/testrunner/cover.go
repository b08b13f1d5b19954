package testrunner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/script"
)

// Coverage is what tests have run of the files of some trees.
type Coverage struct {
	// Files by path: the folder of the tree, then the path in it; "@std//k8s.star" of
	// the standard library.
	Files []script.Covered
}

// StdTested names the files of the standard library that test files are for: outside
// of modules, k8s_test.star is for "@std//k8s.star".
func StdTested(t *tree.Tree, tests []string) []string {
	var out []string
	for _, test := range tests {
		if moduleOf(t, test) == "" {
			out = append(out, "@std//"+strings.TrimSuffix(path.Base(test), "_test.star")+".star")
		}
	}
	return out
}

// Add adds what has run of a tree in this folder, and returns its files and these of the
// standard library; what else of it was loaded does not count. Only picks the files of
// the tree by their paths in it; nil: all.
func (c *Coverage) Add(folder string, cover *script.Cover, only func(path string) bool, std []string) []script.Covered {
	var out []script.Covered
	for _, f := range cover.Files() {
		switch {
		case !strings.HasPrefix(f.Path, "@") && only != nil && !only(f.Path):
		case !strings.HasPrefix(f.Path, "@"):
			f.Path = path.Join(folder, f.Path)
			out = append(out, f)
		case slices.Contains(std, f.Path):
			out = append(out, f)
		}
	}
	for _, f := range out {
		i, found := slices.BinarySearchFunc(c.Files, f.Path, func(f script.Covered, path string) int { return strings.Compare(f.Path, path) })
		if !found {
			c.Files = slices.Insert(c.Files, i, f)
			continue
		}
		for n := range f.Statements { // another folder has tested it too
			c.Files[i].Statements[n].Ran = c.Files[i].Statements[n].Ran || f.Statements[n].Ran
		}
	}
	return out
}

// Summary says in a line how much has run of all files.
func (c *Coverage) Summary() string {
	var all script.Covered
	for _, f := range c.Files {
		all.Statements = append(all.Statements, f.Statements...)
	}
	return share(all)
}

// CoverageOf says in a line how much has run of a file, and what has not.
func CoverageOf(f script.Covered) string {
	text := "coverage: " + share(f)
	if missed := f.Missed(); len(missed) > 0 {
		text += "\tnot run: " + ranges(missed)
	}
	return text
}

func share(f script.Covered) string {
	return fmt.Sprintf("%s of %d statements", percent(f), len(f.Statements))
}

func percent(f script.Covered) string {
	if len(f.Statements) == 0 {
		return "100.0%"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(f.Ran())/float64(len(f.Statements)))
}

// ranges writes lines as people do: 3-5, 9.
func ranges(lines []int) string {
	var out []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if j > i {
			out = append(out, fmt.Sprintf("%d-%d", lines[i], lines[j]))
		} else {
			out = append(out, fmt.Sprint(lines[i]))
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}
