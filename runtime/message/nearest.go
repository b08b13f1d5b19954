package message

import "strings"

// DidYouMean is a hint: the [Nearest] of the candidates, or otherwise.
func DidYouMean(name string, candidates []string, otherwise string) string {
	if near := Nearest(name, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// Nearest returns the candidate that was probably meant by name, or "" when none is near,
// ignoring case and underscores: the shortest that begins with it, else the closest by edit
// distance, else one that it begins with. Of several it is one with the same first letter.
func Nearest(name string, candidates []string) string {
	folded := fold(name)
	if len(folded) < 2 || len(folded) > 256 {
		return "" // each name of one letter is near
	}
	longer := ""
	for _, c := range candidates {
		f := fold(c)
		if f == folded && c != name {
			return c
		}
		if f != folded && strings.HasPrefix(f, folded) && (longer == "" || len(c) < len(longer)) {
			longer = c
		}
	}
	if longer != "" {
		return longer
	}
	// A third of the letters, at least one, may be wrong; a long name shows
	// enough of itself in two thirds, and a wrong suggestion is worse than none.
	best, limit := "", max(1, len(folded)/3)+1
	for _, c := range candidates {
		if c == name || c == "" {
			continue
		}
		f := fold(c)
		d := distance(folded, f, limit+1)
		if d < limit || d == limit && best != "" && sameLetter(f, folded) && !sameLetter(fold(best), folded) {
			best, limit = c, d
		}
	}
	for i := 0; best == "" && i < len(candidates); i++ {
		if f := fold(candidates[i]); len(f) >= 3 && len(f) < len(folded) && strings.HasPrefix(folded, f) {
			best = candidates[i]
		}
	}
	return best
}

func sameLetter(a, b string) bool { return a != "" && b != "" && a[0] == b[0] }

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

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
