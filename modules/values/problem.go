package values

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with values: a finding for a person. It
// never holds the value that was refused, which may be a secret.
type Problem struct {
	// Module is the module's name, or "global"; empty when no module of that
	// name is known.
	Module string `json:"module,omitempty"`
	// Key is the key of the user's config, such as "ingressNginx" or
	// "ingressNginxEnabled".
	Key string `json:"key,omitempty"`
	// Path is the place in the values, such as "web.replicas" or
	// "hosts[0].name"; empty for the values as a whole.
	Path string `json:"path,omitempty"`
	// Layer says who gave the value: "config", "chart values.yaml", "hook
	// nodes.star:discover"; empty when nobody did.
	Layer string `json:"layer,omitempty"`
	// File is the file, or "file:line", that gave the value.
	File string `json:"file,omitempty"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// String returns one line: "config ingressNginx: web.replicas: must be an
// integer".
func (p Problem) String() string {
	var parts []string
	where := p.Layer
	if p.Key != "" {
		where = strings.TrimSpace(where + " " + p.Key)
	}
	if p.File != "" {
		if where != "" {
			where += " (" + p.File + ")"
		} else {
			where = p.File
		}
	}
	for _, s := range []string{where, p.Path, p.Message} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// Error makes a Problem an error.
func (p Problem) Error() string { return p.String() }

// didYouMean makes the hint of an error; nothing for "".
func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return ", did you mean " + strconv.Quote(name) + "?"
}

// sortProblems orders by module, key, path and message.
func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			strings.Compare(a.Module, b.Module),
			strings.Compare(a.Key, b.Key),
			strings.Compare(a.Path, b.Path),
			strings.Compare(a.Message, b.Message),
		)
	})
}

// PathString writes exact keys as people read them: web.replicas; a key that
// holds a dot or a bracket is quoted: annotations["example.com/a"].
func PathString(path []string) string {
	s := ""
	for _, k := range path {
		s = joinKey(s, k)
	}
	return s
}

func joinKey(path, key string) string {
	switch {
	case key == "" || strings.ContainsAny(key, ".[]\"\n"):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
