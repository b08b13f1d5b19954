package chart

import (
	"regexp"
	"slices"
	"strings"
)

// A template is no YAML: its lines are found by their keys, and by how far they are indented.

var element = regexp.MustCompile(`\[\d*\]`)

// fieldPath are the names in "spec.containers[0].image".
func fieldPath(path string) []string { return strings.Split(element.ReplaceAllString(path, ""), ".") }

// hasField says whether there is something at a path, in any element of the lists on the way.
func hasField(at any, path string) bool {
	names := fieldPath(path)
	var has func(at any, names []string) bool
	has = func(at any, names []string) bool {
		switch at := at.(type) {
		case map[string]any:
			next, ok := at[names[0]]
			return ok && (len(names) == 1 || has(next, names[1:]))
		case []any:
			return slices.ContainsFunc(at, func(e any) bool { return has(e, names) })
		}
		return false
	}
	return has(at, names)
}

var (
	keyLine  = regexp.MustCompile(`^((?:\s|- )*)["']?([\w./:-]*[\w./-])["']?\s*:(?:\s|$)`)
	kindLine = regexp.MustCompile(`(?m)^kind:\s*["']?(\w+)`)
)

// LineOf returns the line of a template that gives objects of a kind a field, "spec.containers[0].image", counted from
// 1; 0 when none is seen to do so. keys are names below the path that may hold dots. A template is no YAML: lines
// count by their keys and how far they are indented.
func LineOf(template []byte, kind, path string, keys ...string) int {
	return append(linesOf(template, kind, "", path, keys...), 0)[0]
}

// linesOf are all such lines, first those of documents that hold the name of the object.
func linesOf(template []byte, kind, name, path string, keys ...string) (lines []int) {
	names := append(fieldPath(path), keys...)
	most, named, first := 1, 0, 1
	for _, doc := range strings.SplitAfter(string(template), "\n---") {
		kinds := kindLine.FindAllStringSubmatch(doc, -1)
		if len(kinds) == 0 || slices.ContainsFunc(kinds, func(m []string) bool { return m[1] == kind }) {
			found, n := linesIn(strings.Split(doc, "\n"), names)
			for i := range found {
				found[i] += first
			}
			if n > most {
				lines, most, named = nil, n, 0
			}
			if n == most && hasValue("name", name).MatchString(doc) {
				lines, named = slices.Insert(lines, named, found...), named+len(found)
			} else if n == most {
				lines = append(lines, found...)
			}
		}
		first += strings.Count(doc, "\n")
	}
	return lines
}

// linesIn finds the lines whose keys above them are most of those of a path, and how many those are.
func linesIn(lines, names []string) (found []int, most int) {
	for i, text := range lines {
		m := keyLine.FindStringSubmatch(text)
		if m == nil || m[2] != names[len(names)-1] {
			continue
		}
		n, indent := 1, len(m[1])
		for above := i - 1; above >= 0 && n < len(names) && n > 0; above-- {
			p := keyLine.FindStringSubmatch(lines[above])
			switch {
			case p == nil || len(p[1]) >= indent:
			case p[2] == names[len(names)-1-n]:
				n, indent = n+1, len(p[1])
			default:
				n = 0 // it is in something else
			}
		}
		if n > most {
			found, most = nil, n
		}
		if n == most && n > 0 {
			found = append(found, i)
		}
	}
	if most == 0 {
		if at, n := inFlow(lines, names[len(names)-1]); n > 0 {
			return []int{at}, n
		}
	}
	return found, most
}

// inFlow finds the only line that has a key between brackets: spec: {image: a}.
func inFlow(lines []string, name string) (best, n int) {
	key := regexp.MustCompile(`[{,]\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*:`)
	for i, text := range lines {
		if key.MatchString(text) {
			best, n = i, n+1
		}
	}
	if n != 1 {
		return 0, 0
	}
	return best, n
}

// named is the line at which a template has an object of a name for the nth time.
func (f *faults) named(file string, o Object, nth int) int {
	for _, at := range []string{"metadata.name", "metadata"} {
		left := nth
		for _, key := range f.lines(file, o, at) {
			line := f.nthLine(file, []int{key}, 1, "name", o.Name)
			if left -= min(line, 1); left == 0 {
				return line
			}
		}
	}
	return f.line(file, o, "metadata.name")
}
