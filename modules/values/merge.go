package values

import "maps"

// Merge returns dst with src laid over it: maps are merged deeply, all else,
// lists too, is replaced. As in Helm, a null in src takes the key out of dst;
// where dst has no such key the null stays, so that Helm can take the key out of
// the defaults of a subchart.
//
// Neither argument is changed; the result shares structure with both.
func Merge(dst, src map[string]any) map[string]any {
	if len(src) == 0 {
		if dst == nil {
			return map[string]any{}
		}
		return dst
	}
	if len(dst) == 0 {
		return src
	}
	out := make(map[string]any, len(dst)+len(src))
	maps.Copy(out, dst)
	for k, v := range src {
		old, there := out[k]
		if v == nil && there {
			delete(out, k)
			continue
		}
		out[k] = mergeValue(old, v)
	}
	return out
}

// mergeValue lays over on under.
func mergeValue(under, over any) any {
	u, ok := under.(map[string]any)
	if !ok {
		return over
	}
	o, ok := over.(map[string]any)
	if !ok {
		return over
	}
	return Merge(u, o)
}

// mergeDrop is [Merge] for the operations of hooks: a null always takes its key
// away, so that merging twice is the same as merging once.
func mergeDrop(dst, src map[string]any) map[string]any {
	out := make(map[string]any, len(dst)+len(src))
	maps.Copy(out, dst)
	for k, v := range src {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			under, _ := out[k].(map[string]any)
			out[k] = mergeDrop(under, v)
		default:
			out[k] = v
		}
	}
	return out
}

// nested returns value below the keys of path: {"a": {"b": value}}.
func nested(path []string, value any) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value
}
