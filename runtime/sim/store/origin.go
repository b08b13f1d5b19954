package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Origin is a cluster that a store can lie over, see [Over]: what the store does not
// know it reads there, and nothing is ever written to it. Its result is not
// changed, and must not change.
type Origin interface {
	// Kinds are those that it serves. An error [Unavailable] comes with those that are
	// known nevertheless. Here and below, [Lost] ends it all.
	Kinds() ([]Kind, error)
	// Get returns an object, or nil when it is not there.
	Get(k Kind, namespace, name string) (map[string]any, error)
	// List returns the objects of a namespace ("": of all) that a selection
	// describes.
	List(k Kind, namespace string, sel Selection) ([]map[string]any, error)
}

// Read is what a store asks its origin for: an object, or without a name those of a
// namespace that a selection describes.
type Read struct {
	Kind            Kind
	Namespace, Name string
	Selection       Selection
}

// over is what a store knows of its origin. An object is asked for once: what the
// store has seen or changed is the store's own from then on.
type over struct {
	origin Origin
	served map[schema.GroupVersionResource]bool
	// known are the objects as they were found, by resource and key; nil: not there.
	known map[schema.GroupResource]map[string]map[string]any
	// listed are the selections that were asked for.
	listed map[string]listing
	// later are the objects that came after the list that would have shown them, see [Store.Later].
	later []string
	// gone are the uids of objects that were deleted in the store.
	gone map[string]bool
	by   map[schema.GroupResource]map[string][]string
	// created are the objects that were created in the store.
	created map[schema.GroupResource]map[string]creation
	// views are objects in other versions than they were found in.
	views map[string]map[string]any
	// unavailable, refused and lost are what cannot be read, see [over.ask].
	unavailable Unavailable
	refused     map[string]error
	lost        *Lost
}

// listing says which objects a list that was read would have shown.
type listing struct {
	of      schema.GroupResource
	matches func(obj map[string]any) bool
}

// Over makes a store that shows what the origin holds, and keeps all changes to
// itself. The namespaces are the origin's. Garbage is collected as far as the store
// knows it: dependents that nobody has asked for stay out of sight.
func Over(o Options, origin Origin) (*Store, error) {
	s := empty(o)
	s.over = &over{
		origin: origin, served: map[schema.GroupVersionResource]bool{}, known: map[schema.GroupResource]map[string]map[string]any{},
		listed: map[string]listing{}, gone: map[string]bool{}, by: map[schema.GroupResource]map[string][]string{}, created: map[schema.GroupResource]map[string]creation{},
		refused: map[string]error{}, views: map[string]map[string]any{},
	}
	kinds, err := origin.Kinds()
	if err != nil && !errors.As(err, &s.over.unavailable) {
		return nil, err
	}
	for _, k := range kinds {
		s.over.served[k.GVR()] = true
	}
	s.mu.Lock()
	defer s.unlock()
	for _, k := range kinds {
		if s.kind(k.GVR()) == nil {
			s.serve(k) // of a CRD, of an aggregated API, or newer than the table of built-in kinds
			s.kinds[k.GVR()].schemaPending = true
		}
	}
	return s, nil
}

// loadSchema gives a kind of the origin the schema that its CRD has there, once somebody
// wants to know: a hundred large schemas cost seconds, and few are needed. A kind
// without a CRD, or whose CRD must not be read, stays without a schema.
func (s *Store) loadSchema(k *kind) (*kind, error) {
	if !k.schemaPending {
		return k, nil
	}
	name := k.groupResource().String()
	if crds := s.kind(crdGVR); crds != nil {
		if err := s.load(crds, "", name); err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("custom resource definition %s: %w", name, err)
		}
	}
	if crd := s.table(crdResource).objects[name]; crd != nil {
		s.crdChanged(nil, crd)
	}
	for gvr, other := range s.kinds {
		if other.schemaPending && other.groupResource() == k.groupResource() {
			plain := *other
			plain.schemaPending = false
			s.kinds[gvr] = &plain
		}
	}
	return s.kind(k.GVR()), nil
}

// hides says that a built-in kind is none of the origin's.
func (s *Store) hides(k Kind) bool { return s.over != nil && k.Builtin && !s.over.served[k.GVR()] }

// load reads one object, unless it is known.
func (s *Store) load(k *kind, namespace, name string) error {
	if s.over == nil || name == "" || !s.over.served[k.GVR()] {
		return nil // a kind that is new here has no objects there
	}
	if s.knows(k, namespace, name) {
		return nil
	}
	key := keyOf(namespace, name)
	var obj map[string]any
	if err := s.over.ask(fmt.Sprintf("get %s %s", k.GVR(), key), func() (err error) {
		obj, err = s.over.origin.Get(k.Kind, namespace, name)
		return err
	}); err != nil {
		return err
	}
	if obj != nil && s.cameLater(k, obj) {
		obj = nil
	}
	s.take(k, key, obj)
	return nil
}

// cameLater says whether an object that nobody knew should have stood in a list that was read: it is there since then,
// as with the next revision of a release on which somebody works. The store shows one moment, so it is none of it.
func (s *Store) cameLater(k *kind, obj map[string]any) bool {
	for _, l := range s.over.listed {
		if l.of == k.groupResource() && l.matches(obj) {
			s.over.later = append(s.over.later, keyOf(namespaceOf(obj), nameOf(obj)))
			return true
		}
	}
	return false
}

// Later are the objects, as "namespace/name", that have come to the origin after a list that would have shown them was
// read there. The store shows none of them.
func (s *Store) Later() []string {
	s.mu.Lock()
	defer s.unlock()
	if s.over == nil {
		return nil
	}
	return slices.Clone(s.over.later)
}

// knows says whether an object, or that there is none, is known.
func (s *Store) knows(k *kind, namespace, name string) bool {
	_, known := s.over.known[k.keptIn()][keyOf(namespace, name)]
	return known || s.stored(k, Target{Namespace: namespace, Name: name}) != nil
}

// selected names what a selection describes.
func selected(k *kind, namespace string, sel Selection) string {
	return fmt.Sprintf("%s\n%s\n%s\n%s", k.groupResource(), namespace, sel.Labels, sel.Fields)
}

// knowsList says whether what a selection describes was asked for.
func (s *Store) knowsList(k *kind, namespace string, sel Selection) bool {
	for _, at := range []string{selected(k, namespace, sel), selected(k, namespace, Selection{}), selected(k, "", sel), selected(k, "", Selection{})} {
		if _, is := s.over.listed[at]; is {
			return true
		}
	}
	return false
}

// Unknown are those of some reads for which the store would ask its origin.
func (s *Store) Unknown(reads []Read) []Read {
	s.mu.Lock()
	defer s.unlock()
	return slices.DeleteFunc(slices.Clone(reads), func(r Read) bool {
		k := s.kind(r.Kind.GVR())
		switch {
		case s.over == nil || k == nil || !s.over.served[k.GVR()]:
			return true
		case r.Name != "":
			return s.knows(k, r.Namespace, r.Name)
		}
		return s.knowsList(k, r.Namespace, r.Selection)
	})
}

// loadList reads what a selection describes, unless it has done so before.
func (s *Store) loadList(k *kind, namespace string, sel Selection) error {
	if s.over == nil || !s.over.served[k.GVR()] || s.knowsList(k, namespace, sel) {
		return nil
	}
	var found []map[string]any
	if err := s.over.ask("list "+k.Version+" "+selected(k, namespace, sel), func() (err error) {
		found, err = s.over.origin.List(k.Kind, namespace, sel)
		return err
	}); err != nil {
		return err
	}
	for _, obj := range found {
		if s.knows(k, namespaceOf(obj), nameOf(obj)) || !s.cameLater(k, obj) {
			s.take(k, keyOf(namespaceOf(obj), nameOf(obj)), obj)
		}
	}
	matches, err := k.matcher(namespace, sel)
	if err != nil {
		matches = func(map[string]any) bool { return false } // an origin may know fields that a store does not
	}
	s.over.listed[selected(k, namespace, sel)] = listing{k.groupResource(), matches}
	return nil
}

// view is a stored object as those see it who ask for a version. The API server itself
// converts between the versions of built-in kinds, as long as an object is the origin's.
func (s *Store) view(k *kind, obj map[string]any) (map[string]any, error) {
	if s.over == nil || obj == nil || k.crd != nil || obj["apiVersion"] == k.APIVersion() || !s.over.served[k.GVR()] {
		return s.inVersion(k, obj)
	}
	key := keyOf(namespaceOf(obj), nameOf(obj))
	if versionOf(obj) != versionOf(s.over.known[k.keptIn()][key]) {
		return s.inVersion(k, obj)
	}
	at := k.GVR().String() + " " + key
	if s.over.views[at] == nil {
		var found map[string]any
		if err := s.over.ask("get "+at, func() (err error) {
			found, err = s.over.origin.Get(k.Kind, namespaceOf(obj), nameOf(obj))
			return err
		}); err != nil {
			return nil, err
		}
		if found == nil { // it has gone meanwhile
			return s.inVersion(k, obj)
		}
		s.over.views[at] = found
	}
	return s.over.views[at], nil
}

// take keeps what the origin holds under a key. It is no change: nobody is told.
func (s *Store) take(k *kind, key string, obj map[string]any) {
	gr := k.keptIn()
	known := s.over.known[gr]
	if known == nil {
		known = map[string]map[string]any{}
		s.over.known[gr] = known
	}
	t := s.table(gr)
	if _, seen := known[key]; seen || t.objects[key] != nil {
		return
	}
	known[key] = nil
	if obj == nil {
		return
	}
	if kept, err := s.storedForm(k, obj); err == nil {
		obj = kept
	}
	if k.crd != nil && s.defines(k) {
		obj = asDefined(k, obj)
	}
	known[key], t.objects[key] = obj, obj
	at, _ := slices.BinarySearch(t.keys, key)
	t.keys = slices.Insert(t.keys, at, key)
	// An object that is written here is newer than all that was found.
	if version, err := strconv.ParseInt(versionOf(obj), 10, 64); err == nil && version > s.version {
		s.version = version
	}
}

// defines says whether the definition of a kind is not the origin's.
func (s *Store) defines(k *kind) bool {
	crds := s.kind(crdGVR)
	return crds != nil && versionOf(s.table(crdResource).objects[k.crd.name]) != versionOf(s.knownIn(crds)[k.crd.name])
}

// knownIn are the objects of a kind as they were found, nil when there is no origin.
func (s *Store) knownIn(k *kind) map[string]map[string]any {
	if s.over == nil {
		return nil
	}
	return s.over.known[k.keptIn()]
}

// lost says whether an owner that is not found is gone for certain. In an origin it
// may be one that nobody has asked for.
func (s *Store) lost(uid any) bool {
	text, _ := uid.(string)
	return s.over == nil || s.over.gone[text]
}

// settled says that an object's end is the origin's affair: it was being deleted when
// it was found.
func (s *Store) settled(k *kind, obj map[string]any) bool {
	return s.over != nil && deleting(s.over.known[k.keptIn()][keyOf(namespaceOf(obj), nameOf(obj))])
}

// AsOrigin shows a store to others as what they lie over. Their request is no call of
// a client: injected errors spare it.
func (s *Store) AsOrigin() Origin { return origin{s} }

type origin struct{ s *Store }

func (o origin) Kinds() ([]Kind, error) {
	if o.s.over != nil && len(o.s.over.unavailable) > 0 {
		return o.s.Kinds(), o.s.over.unavailable
	}
	return o.s.Kinds(), nil
}

func (o origin) Get(k Kind, namespace, name string) (map[string]any, error) {
	o.s.mu.Lock()
	defer o.s.unlock()
	if o.s.kind(k.GVR()) == nil {
		return nil, nil
	}
	t := Target{GVR: k.GVR(), Namespace: namespace, Name: name, Spared: true}
	of, err := o.s.find(t, "get")
	if err != nil {
		return nil, err
	}
	return o.s.view(of, o.s.stored(of, t))
}

func (o origin) List(k Kind, namespace string, sel Selection) ([]map[string]any, error) {
	list, err := o.s.List(Target{GVR: k.GVR(), Namespace: namespace, Spared: true}, ListOptions{Selection: sel})
	return list.Items, err
}

// Known are the objects of a kind that the store holds, by namespace and name: of an
// origin's those that somebody has asked for, and as the origin has them before those
// that differ here. Those that have been there in between come first, as far as the
// history reaches back.
func (s *Store) Known(k Kind) []map[string]any {
	s.mu.Lock()
	defer s.unlock()
	t := s.table(k.groupResource())
	var out []map[string]any
	for _, c := range s.history {
		if c.resource == k.groupResource() && c.after != nil {
			out = append(out, c.after)
		}
	}
	if s.over != nil {
		for _, key := range slices.Sorted(maps.Keys(s.over.known[k.groupResource()])) {
			if obj := s.over.known[k.groupResource()][key]; obj != nil {
				out = append(out, obj)
			}
		}
	}
	for _, key := range t.keys {
		out = append(out, t.objects[key])
	}
	return out
}
