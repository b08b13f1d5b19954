package testrunner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// maxShown is how many differences people are shown.
const maxShown = 20

// Differences are the lines of an expectation that was not met, "" for other errors.
func Differences(err error) string {
	var explored *ExploreError
	if errors.As(err, &explored) {
		var lines []string
		if len(explored.Differences) > 1 || explored.Err != nil { // one is in the message
			lines = explored.Differences[:min(len(explored.Differences), maxShown)]
			if more := len(explored.Differences) - maxShown; more > 0 {
				lines = append(lines, fmt.Sprintf("… and %d more", more))
			}
		}
		lines = slices.Clone(lines)
		if explored.Seed != 0 && explored.Err == nil {
			lines = append(lines, `fields that differ rightly, by a time or by chance, are named in the test: t.varies("Secret", "data")`)
		}
		if explored.Seed != 0 {
			lines = append(lines, "what the seed has done last:")
			lines = append(lines, explored.Trace[max(0, len(explored.Trace)-10):]...)
		}
		if len(lines) == 0 {
			return ""
		}
		return "    " + strings.Join(lines, "\n    ") + "\n"
	}
	var expected *builtins.ExpectError
	if !errors.As(err, &expected) || len(expected.Differences) < 2 { // one is in the message
		return ""
	}
	return "    " + strings.Join(expected.Differences, "\n    ") + "\n"
}

// CompareText compares a text with a golden one, line by line.
func CompareText(got, want string) error {
	if got == want {
		return nil
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	var lines []string
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			lines = append(lines, fmt.Sprintf("line %d: missing, want %q", i+1, b[i]))
		case i >= len(b):
			lines = append(lines, fmt.Sprintf("line %d: got %q, want none", i+1, a[i]))
		case a[i] != b[i]:
			lines = append(lines, fmt.Sprintf("line %d: got %q, want %q", i+1, a[i], b[i]))
		}
		if len(lines) == 20 {
			lines = append(lines, "…")
			break
		}
	}
	return &builtins.ExpectError{Msg: "the golden file differs; `starling test -update` writes it anew", Differences: lines}
}
