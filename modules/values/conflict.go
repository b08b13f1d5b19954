package values

import (
	"fmt"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
)

// Conflict says whether ops, the new layer of hook, and the layer of another hook set the same path: an equal path, or
// one that contains the other. The paths that set and remove name belong to the hook as a whole; of a merge only the
// leaves do, so two hooks may merge different keys into one map. Defaults conflict with defaults only.
//
// The error names both hooks, the path and the place of the call. Layers of hook itself do not count.
func Conflict(layers []HookLayer, hook string, ops []effect.ValueOp) error {
	return NewComposer(Section{Hooks: layers}).Conflict(hook, ops)
}

// Conflict is [Conflict] of ops with the layers of the composer.
func (c *Composer) Conflict(hook string, ops []effect.ValueOp) (err error) {
	for _, op := range ops {
		claimsOf(op, c.upper, c.defaults, func(x *joined, path []string) {
			if err != nil {
				return
			}
			if other, at := x.owner(path, hook); other != "" {
				err = conflictError(hook, other, path, at, op)
			}
		})
	}
	return err
}

func conflictError(hook, other string, path, at []string, op effect.ValueOp) error {
	pos := ""
	if op.Pos != "" {
		pos = op.Pos + ": "
	}
	what := fmt.Sprintf("hook %s sets it too", other)
	if !slices.Equal(path, at) {
		what = fmt.Sprintf("hook %s sets %s", other, PathString(at))
	}
	return fmt.Errorf("%shook %s may not %s values path %s: %s; one path belongs to one hook",
		pos, hook, op.Op, PathString(path), what)
}

// claimsOf calls f for each path that op owns.
func claimsOf[T any](op effect.ValueOp, upper, defaults T, f func(T, []string)) {
	switch op.Op {
	case effect.OpDefault:
		f(defaults, op.Path)
	case effect.OpMerge:
		if m, ok := op.Value.(map[string]any); ok {
			leaves(op.Path, m, func(path []string) { f(upper, path) })
			return
		}
		f(upper, op.Path)
	default:
		f(upper, op.Path)
	}
}

// leaves calls f for the path of everything in m that is no map.
func leaves(path []string, m map[string]any, f func([]string)) {
	ends(path, m, func(path []string, v any) {
		if _, isMap := v.(map[string]any); !isMap {
			f(path)
		}
	})
}
