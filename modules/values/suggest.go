package values

import (
	"fmt"
	"strings"
)

// didYouMean makes the hint of an error; nothing for "".
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", name)
}

// nearest returns the candidate that was most likely meant by name, "" when none
// is near. Of equals the first wins.
func nearest(name string, candidates []string) string {
	best, bestDist := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := len(c) - len(name); d >= bestDist || -d >= bestDist {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, diag+1)
		}
	}
	return row[len(b)]
}
