package record

import "slices"

const (
	// maxCells bounds the work of comparing two texts line by line.
	maxCells = 4 << 20
	// around is how many equal lines are shown before and after others.
	around = 2
)

// Diff compares two texts: lines that only the first has begin with "- ", those that only
// the second has with "+ ", and some of both stand around them. It is nil for equal ones.
func Diff(a, b []string) []string {
	if slices.Equal(a, b) {
		return nil
	}
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < min(len(a), len(b))-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	var all []string
	for _, line := range a[:first] {
		all = append(all, "  "+line)
	}
	all = append(all, differ(a[first:len(a)-last], b[first:len(b)-last])...)
	for _, line := range a[len(a)-last:] {
		all = append(all, "  "+line)
	}
	return near(all)
}

// differ compares lines by their longest common subsequence.
func differ(a, b []string) []string {
	common := make([][]int32, 1)
	if len(a)*len(b) <= maxCells {
		common = make([][]int32, len(a)+1)
		for i := range common {
			common[i] = make([]int32, len(b)+1)
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	var out []string
	i, j := 0, 0
	for len(common) > 1 && i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	for _, line := range a[i:] {
		out = append(out, "- "+line)
	}
	for _, line := range b[j:] {
		out = append(out, "+ "+line)
	}
	return out
}

// near leaves out equal lines that are far from others.
func near(all []string) []string {
	keep := make([]bool, len(all))
	for i, line := range all {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
			keep[k] = true
		}
	}
	var out []string
	for i, line := range all {
		switch {
		case keep[i]:
			out = append(out, line)
		case i == 0 || keep[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}
