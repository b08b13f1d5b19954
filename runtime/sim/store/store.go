package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/effect"
)

const (
	defaultHistory = 10000
	// letters of a generated name: those that spell nothing.
	letters = "bcdfghjklmnpqrstvwxz2456789"
)

// Options says what world a [Store] is.
type Options struct {
	// Builtins are the built-in kinds, made once for all stores. Required.
	Builtins *Builtins
	// Now is the clock of creationTimestamp and the like; nil means time.Now.
	Now func() time.Time
	// Seed decides uids and generated names: the same seed, the same ones.
	Seed uint64
	// MakeNamespaces makes a namespace as soon as something is written into it,
	// as tests want it. Without it such a write is 404, as on a real server.
	MakeNamespaces bool
	// History is how many changes are kept for watches and pages of lists; 0
	// means 10,000. A request for an older version is 410.
	History int
	// Convert converts an object of a custom resource definition to another apiVersion, as the webhook of the
	// definition would; a nil object says that it has none. It is called within calls of the store, and must make none.
	Convert func(crd string, obj map[string]any, apiVersion string) (map[string]any, error)
}

// Store is an API server's state. It is safe for concurrent use; it has no
// goroutines, no timers and no controllers. Objects that it returns are
// shared: they must not be changed. Objects that it is given are copied.
type Store struct {
	o Options

	mu      sync.Mutex
	version int64
	oldest  int64 // changes up to this one are forgotten
	// settledAt is the version at which [Store.Settle] has left nothing to do.
	settledAt int64
	kinds     map[schema.GroupVersionResource]*kind
	tables    map[schema.GroupResource]*table
	history   []change
	watchers  []*Watcher
	wake      []func() // to call after unlocking
	faults    []*fault
	// spareSeeded is on while those of [Store.FailAfter] spare everybody.
	spareSeeded bool
	counts      map[string]uint64 // names and uids given out, by what for
	over        *over             // nil: there is no origin
	actor       string            // who makes changes, for people
}

// table holds the objects of one resource, in the version they are stored in.
type table struct {
	objects map[string]map[string]any // by key
	keys    []string                  // sorted
	version int64                     // of the newest change
	// unchanged is the last patch of each object that has changed nothing, by key.
	unchanged map[string]unchanged
}

// change is one entry of the history.
type change struct {
	version  int64
	resource schema.GroupResource
	key      string
	before   map[string]any // nil: was not there
	after    map[string]any // nil: is gone
}

// New makes a store with the namespaces that every cluster has (default,
// kube-node-lease, kube-public, kube-system) and nothing else.
func New(o Options) *Store {
	s := empty(o)
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		s.makeNamespace(name)
	}
	return s
}

// empty makes a store with nothing in it.
func empty(o Options) *Store {
	if o.Builtins == nil {
		panic("store.New: Options.Builtins is missing")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.History == 0 {
		o.History = defaultHistory
	}
	return &Store{o: o, kinds: map[schema.GroupVersionResource]*kind{}, tables: map[schema.GroupResource]*table{}, counts: map[string]uint64{}}
}

// unlock ends a call: those who wait for changes hear of them after it.
func (s *Store) unlock() {
	wake := s.wake
	s.wake = nil
	s.mu.Unlock()
	for _, fn := range wake {
		fn()
	}
}

// Version returns the resourceVersion of the newest change.
func (s *Store) Version() string {
	s.mu.Lock()
	defer s.unlock()
	return strconv.FormatInt(s.version, 10)
}

// VersionOf returns the resourceVersion of the newest change of an object of a kind, "0" before
// the first, and "" of a kind that is not served.
func (s *Store) VersionOf(gvk schema.GroupVersionKind) string {
	k, served := s.KindOf(gvk)
	if !served {
		return ""
	}
	s.mu.Lock()
	defer s.unlock()
	if t := s.tables[k.GVR().GroupResource()]; t != nil {
		return strconv.FormatInt(t.version, 10)
	}
	return "0"
}

func (s *Store) table(gr schema.GroupResource) *table {
	t := s.tables[gr]
	if t == nil {
		t = &table{objects: map[string]map[string]any{}, unchanged: map[string]unchanged{}}
		s.tables[gr] = t
	}
	return t
}

// keyOf names an object within its resource; the keys sort as etcd's do.
func keyOf(namespace, name string) string { return effect.Key(namespace, name) }

// commit makes a change: obj nil takes the object away. It returns the object with
// its resourceVersion.
func (s *Store) commit(k *kind, key string, obj map[string]any) map[string]any {
	gr := k.keptIn()
	t := s.table(gr)
	old := t.objects[key]
	s.version++
	t.version = s.version
	delete(t.unchanged, key)
	version := strconv.FormatInt(s.version, 10)
	c := change{version: s.version, resource: gr, key: key, before: old}
	at, found := slices.BinarySearch(t.keys, key)
	if obj == nil {
		delete(t.objects, key)
		if found {
			t.keys = slices.Delete(t.keys, at, at+1)
		}
		obj = withMeta(old, "resourceVersion", version)
	} else {
		obj = withMeta(obj, "resourceVersion", version)
		t.objects[key] = obj
		c.after = obj
		if !found {
			t.keys = slices.Insert(t.keys, at, key)
		}
	}
	s.history = append(s.history, c)
	if over := len(s.history) - s.o.History; over > s.o.History/4 {
		s.oldest = s.history[over-1].version
		s.history = slices.Clone(s.history[over:])
	}
	if s.over != nil {
		s.over.note(c, s.actor)
	}
	s.notify()
	if gr == crdResource {
		s.crdChanged(c.before, c.after)
	}
	return obj
}

// Forget drops the history: watches and pages that would go on from before this
// moment are 410 Gone.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.unlock()
	s.version++
	s.oldest, s.history = s.version, nil
	s.notify()
}

func (s *Store) now() string { return s.o.Now().UTC().Format(time.RFC3339) }

// random returns bytes that depend on the seed, on what they are for and on how
// often they were asked for: not on the order of other requests.
func (s *Store) random(what string) [sha256.Size]byte {
	s.counts[what]++
	text := binary.BigEndian.AppendUint64(nil, s.o.Seed)
	text = binary.BigEndian.AppendUint64(text, s.counts[what])
	return sha256.Sum256(append(text, what...))
}

func (s *Store) newUID(gr schema.GroupResource, key string) string {
	sum := s.random("uid " + gr.String() + " " + key)
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

func (s *Store) newName(gr schema.GroupResource, namespace, prefix string) string {
	const suffix, longest = 5, 63
	prefix = prefix[:min(len(prefix), longest-suffix)]
	sum := s.random("name " + gr.String() + " " + keyOf(namespace, prefix))
	name := []byte(prefix)
	for _, b := range sum[:suffix] {
		name = append(name, letters[int(b)%len(letters)])
	}
	return string(name)
}
