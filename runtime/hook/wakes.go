package hook

import (
	"context"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// maxKeys is how many objects one event may wake by their keys: the engine looks for each of them.
const maxKeys = 1000

// maxKey is the length of a key that an object may have: two names of 253 bytes, and a slash.
const maxKey = 507

// Wakes returns what says which objects of a hook with for_each an event of one of its watches is
// for, and an id: equal ids say the same. Nil: an event is for all of them, or for its own object.
// Host is that of [Filter].
func Wakes(ctx context.Context, host func() *script.Host, h *generation.Hook, w *builtins.WatchBinding, log builtins.Logger) (func(map[string]any) (*effect.Wakes, error), string) {
	if h.ForEach == "" || w.WakesAll {
		return nil, ""
	}
	each := h.Binding(h.ForEach).Watch
	group := effect.GroupOf(each.APIVersion)
	switch {
	case w == each:
		return nil, ""
	case w.Read != "":
		return Indexed(ctx, host, w, log)
	case w.HoldsFields:
		return func(obj map[string]any) (*effect.Wakes, error) {
			var keys []string
			for _, held := range reconcile.HeldIn(obj) {
				keys = append(keys, held.Key)
			}
			return effect.WakesKeys(keys...), nil
		}, "holders"
	case h.Controller != nil: // its child names it, also where it cannot own it
		return func(obj map[string]any) (*effect.Wakes, error) {
			// The uid wakes nobody. It is what runs find their children by, whatever somebody has made
			// of the name.
			key, uid := reconcile.ParentOf(obj)
			owners := ownerKeys(obj, group, each.Kind)
			switch {
			case key == "": // its owner is its parent
				return effect.WakesKeys(append(owners, uid)...), nil
			case owners == nil || slices.Contains(owners, key):
				return effect.WakesKeys(key, uid), nil
			}
			// Somebody has had it name another parent: its own one waits for its end, too.
			return effect.WakesKeys(append(owners, key, uid)...), nil
		}, fmt.Sprintf("parent, owners %s/%s", group, each.Kind)
	case w.Wakes == nil:
		return func(obj map[string]any) (*effect.Wakes, error) {
			return owners(obj, group, each.Kind), nil
		}, fmt.Sprintf("owners %s/%s", group, each.Kind)
	}
	return func(obj map[string]any) (*effect.Wakes, error) {
		v, err := ofObject(ctx, host(), w.Wakes, obj, "wakes", log)
		var keys []string
		if err == nil {
			keys, err = textsOf(v, w.Pos, "a key as in ctx.key, a list of keys, or None", `; wakes = "all" wakes all objects`)
		}
		if i := slices.IndexFunc(keys, func(key string) bool { return len(key) > maxKey }); err == nil && i >= 0 {
			err = fmt.Errorf("%s: got a key of %d bytes, longer than any of an object", w.Pos, len(keys[i]))
		}
		if err != nil {
			return nil, fmt.Errorf("wakes: %w", hideSecret(w, obj, err))
		}
		return effect.WakesKeys(keys...), nil
	}, w.WakesID
}

// textsOf reads what a function at pos has returned: None, a text or several. Instead says what to do when they are
// too many.
func textsOf(v starlark.Value, pos, want, instead string) (texts []string, err error) {
	wrong := func(v starlark.Value) error { return fmt.Errorf("%s: got %s, want %s", pos, v.Type(), want) }
	if v == starlark.None {
		return nil, nil
	}
	if text, ok := starlark.AsString(v); ok {
		return []string{text}, nil
	}
	list, ok := v.(starlark.Sequence)
	if _, isDict := v.(starlark.IterableMapping); !ok || isDict {
		return nil, wrong(v)
	}
	if n := list.Len(); n > maxKeys {
		return nil, fmt.Errorf("%s: got a list of %d, want %d at most%s", pos, n, maxKeys, instead)
	}
	for e := range starlark.Elements(list) {
		text, ok := starlark.AsString(e)
		if !ok {
			return nil, wrong(e)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// owners wakes the objects of a kind that own this one; nil, for all, when there are none.
func owners(obj map[string]any, group, kind string) *effect.Wakes {
	keys := ownerKeys(obj, group, kind)
	if keys == nil {
		return nil
	}
	return effect.WakesKeys(keys...)
}

// ownerKeys are keys of the objects of a kind that own this one. An owner is in the same namespace or in
// none. Which of both is not known here, and need not be: a key that no object has wakes nobody.
func ownerKeys(obj map[string]any, group, kind string) (keys []string) {
	meta, _ := obj["metadata"].(map[string]any)
	refs, _ := meta["ownerReferences"].([]any)
	namespace, _ := meta["namespace"].(string)
	for _, ref := range refs {
		r, _ := ref.(map[string]any)
		version, _ := r["apiVersion"].(string)
		name, _ := r["name"].(string)
		if r["kind"] != kind || effect.GroupOf(version) != group || name == "" {
			continue
		}
		if keys = append(keys, name); namespace != "" {
			keys = append(keys, namespace+"/"+name)
		}
	}
	return keys
}
