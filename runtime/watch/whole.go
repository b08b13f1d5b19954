package watch

import (
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Whole returns an object as some watch that keeps whole objects shows it, or nil. It may have changed
// since: a write for which it must not have needs its version.
func (m *Manager) Whole(ref effect.Ref) map[string]any {
	m.mu.Lock()
	var found []*stream
	for key, s := range m.streams {
		if key.apiVersion == ref.APIVersion && key.kind == ref.Kind && s.covers(ref) {
			found = append(found, s)
		}
	}
	m.mu.Unlock()
	for _, s := range found {
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
		if v.filter != nil {
			continue
		}
		if _, r := v.find(key); r != nil {
			if o, is := r.value.(*object.Object); is {
				return o.Map()
			}
		}
	}
	return nil
}
