package script

import (
	"strings"
	"unicode"
)

// nearest returns the candidate that x is most likely a misspelling of, or ""
// when none is close: at most a third of the characters differ, case and
// underscores aside.
func nearest(x string, candidates []string) string {
	fx := fold(x)
	best, bestD := "", len(fx)/3+1
	for _, c := range candidates {
		if c == x {
			continue
		}
		if d := distance(fx, fold(c), bestD); d < bestD {
			best, bestD = c, d
		}
	}
	return best
}

func fold(s string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		if r == '_' {
			return -1
		}
		return unicode.ToLower(r)
	}, s))
}

// distance is the number of insertions, removals, replacements and swaps of
// neighbours that turn a into b; any number ≥ limit when it is not below limit.
func distance(a, b []rune, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			next[j] = d
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
