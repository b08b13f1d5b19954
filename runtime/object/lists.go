package object

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
)

// Objects are the objects of a document: those of a list, also of lists in it, or itself. A document with items is a
// list to the API machinery, whatever its kind, and an item has the version and the kind of the list where it names
// none. An error is about an item that is no object; the others are there all the same.
func Objects(doc map[string]any) (out []map[string]any, err error) {
	items, isList := doc["items"].([]any)
	switch {
	case doc == nil: // comments only
		return nil, nil
	case !isList:
		return []map[string]any{doc}, nil
	}
	version, _ := doc["apiVersion"].(string)
	kind, _ := doc["kind"].(string)
	for _, item := range items {
		one, is := item.(map[string]any)
		if !is {
			err = cmp.Or(err, fmt.Errorf("an item of %s is no object", cmp.Or(kind, "a list")))
			continue
		}
		one = maps.Clone(one)
		for key, of := range map[string]string{"apiVersion": version, "kind": strings.TrimSuffix(kind, "List")} {
			if own, _ := one[key].(string); own == "" && of != "" {
				one[key] = of
			}
		}
		more, within := Objects(one)
		out, err = append(out, more...), cmp.Or(err, within)
	}
	return out, err
}
