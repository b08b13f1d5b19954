// Package reads says what of the global values a module reads: its chart, the schemas of
// the chart, and its scripts. A change of other global values cannot change what they give,
// so nobody has to look at the module then.
//
// It looks at texts and evaluates nothing. Where it cannot tell, it says that all global
// values are read: that costs a look too many, and never leaves one out.
package reads

import (
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/object"
)

// Reads are paths below `global`. Nil reads all of it, an empty one nothing.
type Reads struct {
	paths []place
	// texts: those of the values may name what is read, too.
	texts bool
}

// place is one path that is read.
type place struct {
	// keys are exact; dotted is text of which the keys are known with the values only, see
	// [object.Path].
	keys   []string
	dotted string
	// truth: it is only asked whether something is there.
	truth bool
}

func (p place) in(global map[string]any) []string {
	if p.dotted == "" {
		return p.keys
	}
	return object.Dotted(p.dotted).Resolve(global)
}

// Of returns what of global is read. Two globals of which it returns the same give the same
// to all readers. The result shares structure with global; neither must be changed.
func (r *Reads) Of(global map[string]any) map[string]any {
	if r == nil {
		return global
	}
	out := map[string]any{}
	for _, p := range r.paths {
		if !p.truth {
			keep(out, global, p.in(global))
		}
	}
	for _, p := range r.paths {
		if p.truth {
			keepTruth(out, global, p.keys)
		}
	}
	return out
}

// keep puts into out what is at keys in from, or as much of the way as there is: a value in
// the middle that is no map is kept, for it says why there is nothing below it.
func keep(out, from map[string]any, keys []string) {
	if len(keys) == 0 {
		maps.Copy(out, from)
		return
	}
	if out, from = way(out, from, keys); out == nil {
		return
	}
	last := keys[len(keys)-1]
	if v, there := from[last]; there {
		out[last] = v
	}
}

// way follows all keys but the last one and makes the maps of out on the way. It ends with
// nil where there is no map, or one that out has already.
func way(out, from map[string]any, keys []string) (nextOut, nextFrom map[string]any) {
	for _, k := range keys[:len(keys)-1] {
		v, there := from[k]
		if !there {
			return nil, nil
		}
		below, isMap := v.(map[string]any)
		if !isMap || below == nil {
			out[k] = v
			return nil, nil
		}
		next, _ := out[k].(map[string]any)
		switch {
		case out[k] == noEntries: // a map with nothing below it
			return nil, nil
		case next == nil:
			next = map[string]any{}
			out[k] = next
		case object.Identical(next, below):
			return nil, nil
		}
		out, from = next, below
	}
	return out, from
}

// noEntries stands for a map without any.
const noEntries = "\x00 no entries"

// keepTruth puts into out whether something is at keys in from. Of a map that is whether it
// has entries; one with nulls alone may lose them, and is kept.
func keepTruth(out, from map[string]any, keys []string) {
	if len(keys) == 0 {
		switch {
		case len(from) == 0:
			out[""] = noEntries
		case !hasValue(from):
			maps.Copy(out, from)
		}
		return
	}
	v, _ := object.Get(from, keys)
	below, isMap := v.(map[string]any)
	switch {
	case !isMap || below == nil || len(below) > 0 && !hasValue(below):
		keep(out, from, keys)
	case len(below) > 0:
		way(out, from, append(slices.Clip(keys), ""))
	default:
		if out, _ = way(out, from, keys); out != nil {
			out[keys[len(keys)-1]] = noEntries
		}
	}
}

func hasValue(m map[string]any) bool {
	for _, v := range m {
		if v != nil {
			return true
		}
	}
	return false
}

// Join returns what is read by at least one of both.
func Join(a, b *Reads) *Reads {
	if a == nil || b == nil {
		return nil
	}
	return &Reads{paths: slices.Concat(a.paths, b.paths)}
}

// Keys are the keys of global that hold, or would hold, what is read. All says that a change
// of any key may be one of what is read.
func (r *Reads) Keys() (keys []string, all bool) {
	if r == nil {
		return nil, true
	}
	found := map[string]bool{}
	for _, p := range r.paths {
		switch {
		case p.dotted != "":
			for i, c := range p.dotted {
				if c == '.' {
					found[p.dotted[:i]] = true
				}
			}
			found[p.dotted] = true
		case len(p.keys) == 0:
			return nil, true
		default:
			found[p.keys[0]] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), false
}

// String is for people: "all", or the paths.
func (r *Reads) String() string {
	if r == nil {
		return "all"
	}
	found := map[string]bool{}
	for _, p := range r.paths {
		text := p.dotted
		if text == "" {
			text = object.KeysText(p.keys)
		}
		if p.truth {
			text += "?"
		}
		found[text] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " ")
}
