package values

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	objects "github.com/starling-operator/starling/runtime/object"

	"github.com/starling-operator/starling/runtime/message"
)

// maxFindPath bounds a path that people give.
const maxFindPath = 4096

// Find returns the entries at a path and below it, and the exact keys of the path. It is
// dotted text, at each level of which the longest key that is there wins; or as [Entry]
// shows it; or a JSON list of exact keys. A path that leads into a list finds the list,
// which is one value. Below the key of the module in the chart's values ([ExplainInput])
// it may begin with that key. The error for a path that is not there names a near one.
func (x Explanation) Find(path string) ([]Entry, []string, error) {
	if path == "" || len(path) > maxFindPath {
		return nil, nil, fmt.Errorf("a path has 1 to %d characters, not %d", maxFindPath, len(path))
	}
	candidates := []string{path}
	if below, ok := strings.CutPrefix(path, x.ChartKey+"."); ok && x.ChartKey != "" {
		candidates = append(candidates, below)
	}
	for _, text := range candidates {
		keys := x.resolve(text)
		if found := x.at(keys); len(found) > 0 {
			return found, keys, nil
		}
	}
	return nil, nil, fmt.Errorf("module %s has no value at %s%s", x.Module, path, x.meant(path))
}

// resolve returns the exact keys that a path means.
func (x Explanation) resolve(path string) []string {
	if strings.HasPrefix(path, `["`) && !strings.Contains(path, "].") {
		var keys []string
		if err := json.Unmarshal([]byte(path), &keys); err == nil && len(keys) > 0 {
			return keys
		}
	}
	tree := map[string]any{}
	for _, e := range x.Values {
		for end := 1; end <= len(e.Keys); end++ {
			if PathString(e.Keys[:end]) == path {
				return e.Keys[:end]
			}
		}
		if known, _ := objects.Get(tree, e.Keys); known == nil {
			objects.Put(tree, e.Keys, e.Value)
		}
	}
	return objects.Dotted(path).Resolve(tree)
}

// at returns the entries at keys and below, or the list that keys lead into.
func (x Explanation) at(keys []string) []Entry {
	var out []Entry
	for _, e := range x.Values {
		if hasPrefix(e.Keys, keys) {
			out = append(out, e)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, e := range x.Values {
		if _, isList := e.Value.([]any); isList && hasPrefix(keys, e.Keys) && objects.Inside(e.Value, keys[len(e.Keys):]) != nil {
			return []Entry{e}
		}
	}
	return nil
}

// meant is a hint: the path that is nearest to one that is not there.
func (x Explanation) meant(path string) string {
	var all []string
	for _, e := range x.Values {
		for end := 1; end <= len(e.Keys); end++ {
			if text := PathString(e.Keys[:end]); !slices.Contains(all[max(0, len(all)-2*len(e.Keys)):], text) {
				all = append(all, text)
			}
		}
	}
	if slices.Contains(all, GlobalKey+"."+path) {
		return didYouMean(GlobalKey + "." + path)
	}
	if near := message.Nearest(path, all); near != "" {
		return didYouMean(near)
	}
	// The last key alone may be what somebody remembers.
	for _, text := range all {
		if strings.HasSuffix(text, "."+path) {
			return didYouMean(text)
		}
	}
	return "; leave the path out to see all"
}
