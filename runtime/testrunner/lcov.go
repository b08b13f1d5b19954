package testrunner

import (
	"bufio"
	"fmt"
	"io"
)

// WriteLCOV writes what has run in the form of lcov, which genhtml, GitLab, Codecov and editors read: a line has run
// when one of its statements has.
func (c *Coverage) WriteLCOV(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, f := range c.Files {
		fmt.Fprintf(out, "TN:\nSF:%s\n", f.Path)
		var lines []int
		ran := map[int]int{}
		for _, s := range f.Statements {
			if _, seen := ran[s.Line]; !seen {
				lines = append(lines, s.Line)
				ran[s.Line] = 0
			}
			if s.Ran {
				ran[s.Line] = 1
			}
		}
		hit := 0
		for _, line := range lines {
			fmt.Fprintf(out, "DA:%d,%d\n", line, ran[line])
			hit += ran[line]
		}
		fmt.Fprintf(out, "LF:%d\nLH:%d\nend_of_record\n", len(lines), hit)
	}
	return out.Flush()
}
