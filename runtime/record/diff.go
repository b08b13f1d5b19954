package record

import (
	"slices"

	"github.com/pmezard/go-difflib/difflib"
)

// around is how many equal lines are shown before and after others.
const around = 2

// Diff compares two texts: lines that only the first has begin with "- ", those that only
// the second has with "+ ", and some of both are around them. It is nil for equal ones.
func Diff(a, b []string) []string {
	if slices.Equal(a, b) {
		return nil
	}
	var out []string
	add := func(sign string, lines []string) {
		for _, line := range lines {
			out = append(out, sign+line)
		}
	}
	last := 0 // lines of a that were looked at
	for _, group := range difflib.NewMatcher(a, b).GetGroupedOpCodes(around) {
		if group[0].I1 > last {
			add("  ", []string{"…"})
		}
		for _, op := range group {
			if op.Tag == 'e' {
				add("  ", a[op.I1:op.I2])
				continue
			}
			add("- ", a[op.I1:op.I2])
			add("+ ", b[op.J1:op.J2])
		}
		last = group[len(group)-1].I2
	}
	if last < len(a) {
		add("  ", []string{"…"})
	}
	return out
}
