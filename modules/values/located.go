package values

import (
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
	data "github.com/starling-operator/starling/runtime/object"
)

// Located is [Canonical] of kept, a list that Located has returned, and of ops after
// it, with the call and the run that each operation comes from. Those of ops come from
// origin.
func Located(kept, ops []effect.ValueOp, origin *effect.Origin) []effect.ValueOp {
	upper, defaults := &edit{}, &edit{}
	for _, op := range kept {
		from := &source{pos: op.Pos, origin: op.Origin}
		if op.Origin != nil {
			from.within = op.Origin.Within
		}
		foldOne(op, upper, defaults, from)
	}
	for _, op := range ops {
		foldOne(op, upper, defaults, &source{pos: op.Pos, origin: origin})
	}
	out := slices.Concat(defaults.ops(nil, effect.OpDefault), upper.ops(nil, effect.OpSet))
	return marked(out, slices.Concat(kept, ops))
}

// Relocate returns old with the calls and runs of new, of two lists from [Located] that
// are [Equal]. It shares the values of old.
func Relocate(old, new []effect.ValueOp) []effect.ValueOp {
	if len(old) != len(new) {
		return old
	}
	out := slices.Clone(old)
	for i := range out {
		out[i].Pos, out[i].Origin = new[i].Pos, new[i].Origin
	}
	return out
}

// on puts the call on an operation; nil: it is not known.
func (s *source) on(op effect.ValueOp) effect.ValueOp {
	if s == nil {
		return op
	}
	op.Pos, op.Origin = s.pos, s.origin
	if len(s.within) > 0 {
		op.Origin = &effect.Origin{Within: s.within}
		if s.origin != nil {
			op.Origin.Run, op.Origin.At = s.origin.Run, s.origin.At
		}
	}
	return op
}

// marked puts on canonical operations which of their texts were secret in ops. A text
// that a later call has set anew is no secret any more, unless it was one again.
func marked(canonical, ops []effect.ValueOp) []effect.ValueOp {
	var secrets map[string][]string // paths in the values
	for _, op := range ops {
		if op.Op == effect.OpSet && len(secrets) > 0 {
			delete(secrets, pathKey(op.Path))
		}
		for _, at := range op.Secrets {
			if secrets == nil {
				secrets = map[string][]string{}
			}
			path := slices.Concat(op.Path, at)
			secrets[pathKey(path)] = path
		}
	}
	if len(secrets) == 0 {
		return canonical
	}
	sorted := slices.SortedFunc(maps.Values(secrets), slices.Compare)
	for i := range canonical {
		op := &canonical[i]
		if op.Op == effect.OpRemove {
			continue
		}
		// Entries at a path and below it stand together.
		first, _ := slices.BinarySearchFunc(sorted, op.Path, slices.Compare)
		for _, path := range sorted[first:] {
			if !hasPrefix(path, op.Path) {
				break
			}
			at := path[len(op.Path):]
			if v, ok := data.Inside(op.Value, at).(string); ok && v != "" {
				op.Secrets = append(op.Secrets, at)
			}
		}
	}
	return canonical
}

// pathKey tells paths apart.
func pathKey(path []string) string { return strings.Join(path, "\x00") }

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}
