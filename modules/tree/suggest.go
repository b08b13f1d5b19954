package tree

import "strings"

// nearest returns the candidate that x is probably a misspelling of, or "".
func nearest(x string, candidates []string) string {
	best, bestD := "", len(x)/3+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(x), strings.ToLower(c)); d < bestD {
			best, bestD = c, d
		}
	}
	return best
}

// distance is the number of bytes to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	const longest = 100 // of what anybody misspells
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = min(d, row[j], row[j+1]) + 1
			}
			diagonal = row[j+1]
			row[j+1] = d
		}
	}
	return row[len(b)]
}
