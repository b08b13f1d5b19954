package store

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Kind is one kind in one version, as discovery shows it.
type Kind struct {
	// Group is "" for the core group, Version as in "v1", Kind as in "ConfigMap".
	Group, Version, Kind string
	// Plural is the resource of the URL ("configmaps"), Singular its other name.
	Plural, Singular string
	// Namespaced is false for cluster-scoped kinds.
	Namespaced bool
	// ShortNames and Categories are what kubectl takes too ("cm", "all").
	ShortNames, Categories []string
	// Status and Scale say which subresources there are.
	Status, Scale bool
	// Builtin is false for kinds of a CRD and for those of [Store.Serve].
	Builtin bool

	verbs []string // nil: all
}

// GVK returns what the objects say they are.
func (k Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// GVR returns what the URL says.
func (k Kind) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Plural}
}

// APIVersion returns "apps/v1", or "v1" for the core group.
func (k Kind) APIVersion() string { return k.GVK().GroupVersion().String() }

// ListKind is the kind of its lists.
func (k Kind) ListKind() string { return k.Kind + "List" }

func (k Kind) groupResource() schema.GroupResource { return k.GVR().GroupResource() }

// Verbs returns what may be done with the kind, in discovery's order.
func (k Kind) Verbs() []string {
	if k.verbs != nil {
		return k.verbs
	}
	if !k.Builtin {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if k.Plural == "namespaces" {
		verbs = slices.DeleteFunc(verbs, func(v string) bool { return v == "deletecollection" })
	}
	return verbs
}

// kind is a Kind with what the store needs to know of it.
type kind struct {
	Kind

	// The rest is what differs between the built-in kinds.
	generation    bool // has metadata.generation
	firstOnly     bool // it stays 1
	versioned     bool // an update has to say which resourceVersion it is for
	putCreates    bool // an update of what is not there creates it
	returnsGone   bool // a delete answers with the object that is gone
	orphans       bool // a delete leaves dependents behind unless told otherwise
	schemaPending bool // of an origin, and nobody has looked for its CRD yet; see Store.loadSchema
	crd           *crdVersion
	typed         *typedKind
	types         func() managedfields.TypeConverter // for server-side apply
	keptAs        *kind                              // the kind in whose form objects are stored; nil: this one
}

// keptIn is the resource under which objects of the kind are stored.
func (k *kind) keptIn() schema.GroupResource {
	if k.keptAs != nil {
		return k.keptAs.groupResource()
	}
	return k.groupResource()
}

// Kinds returns all kinds that are served now, sorted by group, version and plural.
func (s *Store) Kinds() []Kind {
	s.mu.Lock()
	defer s.unlock()
	out := make([]Kind, 0, len(s.o.Builtins.kinds)+len(s.kinds))
	for _, k := range s.o.Builtins.sorted {
		if !s.hides(k) {
			out = append(out, k)
		}
	}
	if len(s.kinds) == 0 {
		return out
	}
	for _, k := range s.kinds {
		out = append(out, k.Kind)
	}
	slices.SortFunc(out, inOrder)
	return out
}

func inOrder(a, b Kind) int {
	return strings.Compare(a.Group+"/"+a.Version+"/"+a.Plural, b.Group+"/"+b.Version+"/"+b.Plural)
}

// Kind returns the kind of a resource; ok is false when it is not served.
func (s *Store) Kind(gvr schema.GroupVersionResource) (k Kind, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	if k := s.kind(gvr); k != nil {
		return k.Kind, true
	}
	return Kind{}, false
}

// KindOf finds the kind that an object says it is; ok is false when it is not
// served.
func (s *Store) KindOf(gvk schema.GroupVersionKind) (k Kind, ok bool) {
	s.mu.Lock()
	defer s.unlock()
	if k := s.kindOf(gvk); k != nil {
		return k.Kind, true
	}
	return Kind{}, false
}

// kindOf returns the kind that an object says it is, or nil.
func (s *Store) kindOf(gvk schema.GroupVersionKind) *kind {
	if k := s.o.Builtins.byKind[gvk]; k != nil && !s.hides(k.Kind) {
		return k
	}
	for _, k := range s.kinds {
		if k.GVK() == gvk {
			return k
		}
	}
	return nil
}

// Serve adds a kind that has no CRD and no schema: all its fields are kept as they
// are, lists are atomic for server-side apply. A kind that is served already stays
// what it is.
func (s *Store) Serve(k Kind) {
	s.mu.Lock()
	defer s.unlock()
	if s.kind(k.GVR()) == nil {
		s.serve(k)
	}
}

func (s *Store) serve(k Kind) {
	if k.Singular == "" {
		k.Singular = strings.ToLower(k.Kind)
	}
	k.Builtin = false
	s.settledAt = 0 // owners of the kind may turn out to be gone
	s.kinds[k.GVR()] = &kind{Kind: k, generation: true, types: managedfields.NewDeducedTypeConverter}
}

// kind returns the kind of a resource, or nil.
func (s *Store) kind(gvr schema.GroupVersionResource) *kind {
	if k := s.o.Builtins.byResource[gvr]; k != nil && !s.hides(k.Kind) {
		return k
	}
	return s.kinds[gvr]
}
