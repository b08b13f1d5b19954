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
// is near: the fewest slips win, then the same first letter, then the order.
func nearest(name string, candidates []string) string {
	if len(name) < 2 {
		return "" // everything of one letter is near
	}
	limit := max(1, len(name)/3)
	best, bestScore := "", 2*limit+1
	for _, c := range candidates {
		if d := len(c) - len(name); c == "" || d > limit || -d > limit {
			continue
		}
		score := 2 * distance(strings.ToLower(name), strings.ToLower(c))
		if c[0] != name[0] {
			score++
		}
		if score < bestScore || score == bestScore && best == "" {
			best, bestScore = c, score
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace, or of
// neighbours to swap.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 0
			if a[i] != b[j] {
				cost = 1
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
