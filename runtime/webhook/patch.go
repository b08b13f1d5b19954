package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON patch (RFC 6902). Libraries that make such patches
// know numbers as floats only, so that large integers would be taken for equal.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON leaves the value out where there is none.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	type plain operation
	return json.Marshal(plain(o))
}

// patchOf returns the JSON patch that makes the plain data is of was; nil when they are the same.
func patchOf(was, is map[string]any) ([]byte, error) {
	ops := diff(nil, "", was, is)
	if len(ops) == 0 {
		return nil, nil
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("the changed object cannot be encoded")
	}
	return patch, nil
}

// diff appends the steps from one value to another, to be taken in their order.
func diff(ops []operation, path string, was, is any) []operation {
	switch before := was.(type) {
	case map[string]any:
		if after, ok := is.(map[string]any); ok && (path == "" || !nameless(before) && !nameless(after)) {
			return diffMaps(ops, path, before, after)
		}
	case []any:
		if after, ok := is.([]any); ok {
			return diffLists(ops, path, before, after)
		}
	}
	if reflect.DeepEqual(was, is) {
		return ops
	}
	return append(ops, operation{"replace", path, is})
}

// nameless says whether a key is empty: the API server's library cannot point to it.
func nameless(m map[string]any) bool { _, is := m[""]; return is }

func diffMaps(ops []operation, path string, was, is map[string]any) []operation {
	for _, k := range slices.Sorted(maps.Keys(was)) {
		at := path + "/" + pointer(k)
		if after, there := is[k]; there {
			ops = diff(ops, at, was[k], after)
		} else {
			ops = append(ops, operation{Op: "remove", Path: at})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(is)) {
		if _, there := was[k]; !there {
			ops = append(ops, operation{"add", path + "/" + pointer(k), is[k]})
		}
	}
	return ops
}

// diffLists leaves what two lists begin and end with alone: one element that comes, goes or changes is one step.
func diffLists(ops []operation, path string, was, is []any) []operation {
	head := 0
	for head < len(was) && head < len(is) && reflect.DeepEqual(was[head], is[head]) {
		head++
	}
	tail := 0
	for tail < len(was)-head && tail < len(is)-head && reflect.DeepEqual(was[len(was)-1-tail], is[len(is)-1-tail]) {
		tail++
	}
	before, after := was[head:len(was)-tail], is[head:len(is)-tail]
	common := min(len(before), len(after))
	for i := range common {
		ops = diff(ops, path+"/"+strconv.Itoa(head+i), before[i], after[i])
	}
	for i := len(before) - 1; i >= common; i-- { // from the end, so that places stay
		ops = append(ops, operation{Op: "remove", Path: path + "/" + strconv.Itoa(head+i)})
	}
	for i := common; i < len(after); i++ {
		ops = append(ops, operation{"add", path + "/" + strconv.Itoa(head+i), after[i]})
	}
	return ops
}

// pointer writes a key as a part of a JSON pointer (RFC 6901).
func pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
