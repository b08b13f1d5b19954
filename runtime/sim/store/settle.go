package store

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxSettle bounds the rounds of one Settle: each takes at least one object away
// or a finalizer off, so only a fault in here would reach it.
const maxSettle = 100000

// Settle does what a cluster's garbage collector, namespace controller and CRD
// controller would do by and by, until nothing is left to do: dependents of what is
// gone go, owners that wait for their dependents go after them, orphans are let go,
// namespaces and CRDs that are deleted go with their contents. It works in the
// order of resource, namespace and name. It says whether it changed anything.
func (s *Store) Settle() bool {
	s.mu.Lock()
	defer s.unlock()
	if s.settledAt == s.version && s.over == nil { // what is read of an origin is no change
		return false
	}
	changed := false
	for range maxSettle {
		if !s.collect() && !s.emptyNamespaces() && !s.emptyCRDs() {
			s.settledAt = s.version
			return changed
		}
		changed = true
	}
	return changed
}

// each calls fn for all objects, in order, until it returns true.
func (s *Store) each(fn func(k *kind, obj map[string]any) bool) bool {
	order := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, gr := range slices.SortedFunc(maps.Keys(s.tables), order) {
		if len(s.tables[gr].keys) == 0 {
			continue
		}
		k := s.anyVersion(gr)
		if k == nil {
			continue
		}
		t := s.tables[gr]
		for _, key := range slices.Clone(t.keys) {
			if obj := t.objects[key]; obj != nil && fn(k, obj) {
				return true
			}
		}
	}
	return false
}

// anyVersion returns a kind by which a resource can be reached: the one it is
// stored in when that is served.
func (s *Store) anyVersion(gr schema.GroupResource) *kind {
	var found *kind
	for _, k := range s.o.Builtins.kinds {
		if k.groupResource() == gr && k.keptAs == nil {
			return k
		}
	}
	for _, k := range s.kinds {
		if k.groupResource() != gr {
			continue
		}
		if found == nil || k.crd != nil && k.crd.storage == k.Version || found.crd != nil && found.crd.storage != found.Version && k.Version < found.Version {
			found = k
		}
	}
	return found
}

// owner is one entry of ownerReferences, looked up.
type owner struct {
	ref     map[string]any
	object  map[string]any // nil: not there
	unknown bool           // its kind is not served, or it cannot be an owner: nobody can say
}

func (s *Store) ownersOf(obj map[string]any) []owner {
	list, _ := metaOf(obj)["ownerReferences"].([]any)
	out := make([]owner, 0, len(list))
	for _, e := range list {
		ref, _ := e.(map[string]any)
		apiVersion, _ := ref["apiVersion"].(string)
		name, _ := ref["name"].(string)
		kindName, _ := ref["kind"].(string)
		o := owner{ref: ref, unknown: true}
		// Nobody can own across namespaces: left alone.
		if k := s.kindOf(schema.FromAPIVersionAndKind(apiVersion, kindName)); k != nil && (!k.Namespaced || namespaceOf(obj) != "") {
			key := name
			if k.Namespaced {
				key = keyOf(namespaceOf(obj), name)
			}
			if found := s.table(k.keptIn()).objects[key]; found != nil && uidOf(found) == ref["uid"] {
				o.object = found
			}
			o.unknown = o.object == nil && !s.lost(ref["uid"])
		}
		out = append(out, o)
	}
	return out
}

func waitsForDependents(obj map[string]any) bool {
	return deleting(obj) && slices.Contains(finalizersOf(obj), metav1.FinalizerDeleteDependents)
}

func letsGo(obj map[string]any) bool {
	return deleting(obj) && slices.Contains(finalizersOf(obj), metav1.FinalizerOrphanDependents)
}

// collect does one step of garbage collection.
func (s *Store) collect() bool {
	return s.each(func(k *kind, obj map[string]any) bool {
		if s.settled(k, obj) {
			return false
		}
		if waitsForDependents(obj) || letsGo(obj) {
			if s.finishOwner(k, obj) {
				return true
			}
		}
		owners := s.ownersOf(obj)
		if len(owners) == 0 {
			return false
		}
		solid, foreground, lost := 0, false, 0
		for _, o := range owners {
			switch {
			case o.unknown, o.object != nil && !waitsForDependents(o.object):
				solid++
			case o.object != nil:
				foreground = true
			default:
				lost++
			}
		}
		switch {
		case solid > 0 && (lost > 0 || foreground):
			return s.dropOwners(k, obj, owners, func(o owner) bool { return !o.unknown && (o.object == nil || waitsForDependents(o.object)) })
		case solid > 0 || deleting(obj):
			return false
		case foreground && s.dependents(uidOf(obj)):
			return s.remove(k, obj, metav1.DeletePropagationForeground)
		case letsGo(obj):
			return s.remove(k, obj, metav1.DeletePropagationOrphan)
		}
		return s.remove(k, obj, metav1.DeletePropagationBackground)
	})
}

// dependents says whether an object has any.
func (s *Store) dependents(uid string) bool {
	return s.each(func(_ *kind, d map[string]any) bool {
		return slices.ContainsFunc(s.ownersOf(d), func(o owner) bool { return o.ref["uid"] == uid })
	})
}

// remove deletes one object in its own step; false when that changes nothing.
func (s *Store) remove(k *kind, obj map[string]any, p metav1.DeletionPropagation) bool {
	before := s.version
	_, err := s.delete(k, Target{GVR: k.GVR(), Namespace: namespaceOf(obj), Name: nameOf(obj)}, DeleteOptions{Propagation: p})
	return err == nil && s.version != before
}

// dropOwners takes references off an object.
func (s *Store) dropOwners(k *kind, obj map[string]any, owners []owner, drop func(owner) bool) bool {
	var kept []any
	for _, o := range owners {
		if !drop(o) {
			kept = append(kept, o.ref)
		}
	}
	if len(kept) == len(owners) {
		return false
	}
	var value any
	if len(kept) > 0 {
		value = kept
	}
	changed, err := s.update(k, "", "kube-controller-manager", obj, withMeta(obj, "ownerReferences", value))
	if err != nil {
		return false
	}
	s.commit(k, keyOf(namespaceOf(obj), nameOf(obj)), changed)
	return true
}

// finishOwner lets an owner go that waits for its dependents, or lets them go.
func (s *Store) finishOwner(k *kind, obj map[string]any) bool {
	uid, finalizer := uidOf(obj), metav1.FinalizerDeleteDependents
	if letsGo(obj) {
		finalizer = metav1.FinalizerOrphanDependents
		if s.each(func(dk *kind, d map[string]any) bool {
			return s.dropOwners(dk, d, s.ownersOf(d), func(o owner) bool { return o.ref["uid"] == uid && o.object != nil })
		}) {
			return true
		}
	} else if s.blocked(uid) {
		return false
	}
	left := slices.DeleteFunc(finalizersOf(obj), func(f string) bool { return f == finalizer })
	s.setOrGone(k, setFinalizers(obj, left))
	return true
}

// blocked says whether a dependent that blocks its owner is still there.
func (s *Store) blocked(uid string) bool {
	return s.each(func(_ *kind, d map[string]any) bool {
		return slices.ContainsFunc(s.ownersOf(d), func(o owner) bool {
			return o.ref["uid"] == uid && o.object != nil && o.ref["blockOwnerDeletion"] == true
		})
	})
}

// setOrGone stores a deleted object, or takes it away when nothing holds it.
func (s *Store) setOrGone(k *kind, obj map[string]any) {
	key := keyOf(namespaceOf(obj), nameOf(obj))
	if deleting(obj) && len(finalizersOf(obj)) == 0 && !s.held(k, obj) {
		s.commit(k, key, nil)
		return
	}
	s.commit(k, key, obj)
}

// clearOut deletes one of the objects that go first; left says whether there are such ones.
func (s *Store) clearOut(first func(k *kind, obj map[string]any) bool) (stepped, left bool) {
	stepped = s.each(func(k *kind, obj map[string]any) bool {
		if !first(k, obj) {
			return false
		}
		left = true
		return !deleting(obj) && s.remove(k, obj, metav1.DeletePropagationBackground)
	})
	return stepped, left
}

// emptyNamespaces does one step towards the end of namespaces that are deleted.
func (s *Store) emptyNamespaces() bool {
	spaces := s.o.Builtins.byResource[namespaceResource.WithVersion("v1")]
	t := s.table(namespaceResource)
	for _, name := range slices.Clone(t.keys) {
		ns := t.objects[name]
		if !deleting(ns) || s.settled(spaces, ns) {
			continue
		}
		stepped, left := s.clearOut(func(k *kind, obj map[string]any) bool { return k.Namespaced && namespaceOf(obj) == name })
		if !stepped && !left && s.held(spaces, ns) {
			s.setOrGone(spaces, withField(ns, "spec", map[string]any{"spec": map[string]any{}}))
			stepped = true
		}
		if stepped {
			return true
		}
	}
	return false
}

// emptyCRDs does one step towards the end of CRDs that are deleted.
func (s *Store) emptyCRDs() bool {
	crds := s.o.Builtins.byResource[crdGVR]
	t := s.table(crdResource)
	for _, name := range slices.Clone(t.keys) {
		crd := t.objects[name]
		if !deleting(crd) || !slices.Contains(finalizersOf(crd), crdFinalizer) || s.settled(crds, crd) {
			continue
		}
		stepped, left := s.clearOut(func(k *kind, obj map[string]any) bool { return k.crd != nil && k.crd.name == name })
		if !stepped && !left {
			rest := slices.DeleteFunc(finalizersOf(crd), func(f string) bool { return f == crdFinalizer })
			s.setOrGone(crds, setFinalizers(crd, rest))
			stepped = true
		}
		if stepped {
			return true
		}
	}
	return false
}
