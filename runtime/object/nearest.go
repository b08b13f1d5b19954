package object

import "strings"

// Nearest returns the candidate that is closest to x by edit distance, ignoring
// case and underscores, else one of which x is the beginning, or that begins x, or
// "" when none is close. It answers "did you mean".
func Nearest(x string, candidates []string) string {
	fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	folded := fold(x)
	// A third of the letters, at least one, may be wrong; a long name shows
	// enough of itself in two thirds, and a wrong suggestion is worse than none.
	best, limit := "", max(1, len(folded)/3)+1
	if len(folded) > 256 {
		return ""
	}
	for _, c := range candidates {
		if c == x {
			continue
		}
		if d := distance(folded, fold(c), limit); d < limit {
			best, limit = c, d
		}
	}
	if best == "" {
		return samePrefix(folded, candidates, fold)
	}
	return best
}

// samePrefix finds a candidate that goes on where x ends, or the other way round:
// warn for warning.
func samePrefix(folded string, candidates []string, fold func(string) string) string {
	for _, c := range candidates {
		if f := fold(c); f != folded && min(len(f), len(folded)) >= 3 &&
			(strings.HasPrefix(folded, f) || strings.HasPrefix(f, folded)) {
			return c
		}
	}
	return ""
}

// distance is the Damerau-Levenshtein distance (adjacent swaps count once)
// between a and b, or limit when it is limit or more.
func distance(a, b string, limit int) int {
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
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(row[len(b)], limit)
}
