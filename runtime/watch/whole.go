package watch

import (
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Whole returns an object as some watch that keeps whole objects shows it, or nil. It may have changed
// since: a write for which it must not have needs its version.
func (m *Manager) Whole(ref effect.Ref) map[string]any {
	for _, s := range m.covering(ref) {
		if obj := s.whole(objectKey{ref.Namespace, ref.Name}); obj != nil {
			return obj
		}
	}
	return nil
}

func (s *stream) whole(key objectKey) map[string]any {
	if !s.mapping.Namespaced {
		key.namespace = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		if obj := v.whole(key); obj != nil {
			return obj
		}
	}
	return nil
}

// Whole is [Manager.Whole] for one watch.
func (l *Local) Whole(ref effect.Ref) map[string]any {
	return l.view.whole(objectKey{ref.Namespace, ref.Name})
}

// whole returns an object, if the view keeps whole ones.
func (v *view) whole(key objectKey) map[string]any {
	_, r := v.find(key)
	if r == nil || v.Filter != nil && !v.Both {
		return nil
	}
	kept, _ := r.value.(*object.Object)
	if kept == nil {
		return nil
	}
	obj := kept.Map()
	if v.Filter != nil { // keep = "both"
		obj, _ = obj["object"].(map[string]any)
	}
	return obj
}
