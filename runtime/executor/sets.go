package executor

import (
	"context"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// SetMark must be asked as soon as the engine wants sets removed: what is
// applied later belongs to objects, or to a life of the module, that have come since.
func (x *Executor) SetMark() uint64 { return x.o.Writer.SetMark() }

// DropSets forgets the sets of objects that are gone.
func (x *Executor) DropSets(a engine.DropSets) {
	x.o.Writer.DropSets(effect.Manager(a.Hook), func(key string) bool {
		return key == a.Key || a.Key == "" && !a.Keys[key]
	})
}

// Sets returns by module which hooks have applied sets of objects that go with them, as
// their field managers.
func (x *Executor) Sets(ctx context.Context) (map[string][]string, error) {
	managers, err := x.o.Writer.SetManagers(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, manager := range managers {
		if module := effect.ManagerModule(manager); module != "" {
			out[module] = append(out[module], manager)
		}
	}
	return out, nil
}

// RemoveSets deletes the objects of the sets that some hooks have applied.
func (x *Executor) RemoveSets(ctx context.Context, a engine.RemoveSets, mark uint64) error {
	return x.o.Writer.RemoveSets(ctx, a.Managers, mark)
}
