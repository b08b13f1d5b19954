package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// KeptType is the type of the Secrets that a [Kept] makes.
	KeptType = "starling.dev/kept"
	// KeptLabel names the module whose data a Secret holds.
	KeptLabel = "starling.dev/kept"

	// revisionAnnotation counts the saves of a module. Where a crash has left a
	// key in two Secrets, the one with the higher count is right.
	revisionAnnotation = "starling.dev/revision"

	// In bytes; valueLimit stays under the 1 MiB that the API server allows a Secret.
	partLimit  = 16 << 10
	valueLimit = effect.MaxKept
)

// KeptOptions says where data is kept.
type KeptOptions struct {
	// Client reaches the API server.
	Client *Client
	// Namespace is the operator's.
	Namespace string
	// Name is the instance's name; the Secrets' names begin with it.
	Name string
	// Instance is the value of the label starling.dev/instance.
	Instance string
	// Label is on the Secrets, and is their type; "" means [KeptLabel], for data of modules. With another one the only
	// "module" is the instance, and the Secrets are "<Name>-1" and so on.
	Label string
	// Room is how much data one Secret holds before the next one begins; a single larger value has a Secret for itself.
	// 0 means 16 KiB: the API server works on all of a Secret at each change, 25 ms at 128 KiB, 6 ms at this size.
	Room int
	// Conflict is told that another process has written what is kept; nil: nobody
	// is.
	Conflict func(error)
}

// Kept keeps small data of modules, values layers and state, across restarts: in
// Secrets of the operator's namespace, one a module, more when its data outgrows
// one ("<name>-kept-<module>", then "<name>-kept-<module>.2" and so on; the dot
// cannot be part of a module's name, so the names never meet). Only the holder of
// the Lease may call Save; each write holds only for the Secret as this process left
// it, so a second writer is found out, see [ErrOtherWriter]. It is safe for concurrent
// use.
type Kept struct {
	o KeptOptions

	mu      sync.Mutex
	loaded  bool
	modules map[string]*keptModule
}

// keptModule is what is stored of one module. Its mutex serialises its saves.
type keptModule struct {
	mu       sync.Mutex
	room     int // as in KeptOptions
	revision int64
	parts    map[int]*part // by number, from 1
	last     *saved        // nil: it is not sure what is stored
}

// part is one Secret, as it is stored.
type part struct {
	uid, version string // of the API server's last answer
	content
	// tried is set when a write had no clear answer: it may have been carried out
	// all the same. No keys: a delete.
	tried *content
}

// content is what of a Secret is ours.
type content struct {
	revision int64
	sums     map[string][sha256.Size]byte // of the values, by key
}

func (c content) equal(other content) bool {
	return c.revision == other.revision && maps.Equal(c.sums, other.sums)
}

// NewKept makes a store. It does no I/O.
func NewKept(o KeptOptions) *Kept {
	o.Label, o.Room = cmp.Or(o.Label, KeptLabel), cmp.Or(o.Room, partLimit)
	return &Kept{o: o, modules: map[string]*keptModule{}}
}

// Load reads all that is kept, by module and key, with one paged list.
func (k *Kept) Load(ctx context.Context) (map[string]map[string][]byte, error) {
	modules, data, err := k.list(ctx, k.o.Label)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.modules, k.loaded = modules, true
	return data, nil
}

// list reads the Secrets that a label selects.
func (k *Kept) list(ctx context.Context, label string) (modules map[string]*keptModule, data map[string]map[string][]byte, err error) {
	for range 2 { // a list may take longer than the API server keeps its state: once more
		modules, data = map[string]*keptModule{}, map[string]map[string][]byte{}
		o := metav1.ListOptions{LabelSelector: effect.InstanceLabel + "=" + k.o.Instance + "," + label}
		_, err = k.o.Client.Each(ctx, secrets, k.o.Namespace, o, func(obj map[string]any) error { return k.read(obj, modules, data) })
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	if errors.As(err, new(*keptError)) {
		return nil, nil, err
	}
	return modules, data, k.o.Client.Explain(err, "list", secrets, k.o.Namespace)
}

// Instance is the value of the label starling.dev/instance.
func (k *Kept) Instance() string { return k.o.Instance }

// KeptModule is the module whose data a Secret holds.
func KeptModule(secret map[string]any) string {
	return effect.At[string](secret, "metadata", "labels", KeptLabel)
}

// Read returns what these Secrets hold, by module and key, as [Kept.Load] does; it may be
// called without the Lease, and changes nothing. Of a Secret that cannot be read the error tells,
// and the others are read.
func (k *Kept) Read(secrets []map[string]any) (map[string]map[string][]byte, error) {
	out := map[string]map[string][]byte{}
	modules := map[string]*keptModule{}
	var errs []error
	for _, obj := range secrets {
		errs = append(errs, k.read(obj, modules, out))
	}
	return out, errors.Join(errs...)
}

type keptError struct{ msg string }

func (e *keptError) Error() string { return e.msg }

// read takes one Secret into modules and out.
func (k *Kept) read(obj map[string]any, modules map[string]*keptModule, out map[string]map[string][]byte) error {
	ref := effect.RefOf(obj)
	module := effect.At[string](obj, "metadata", "labels", k.o.Label)
	number := k.partNumber(module, ref.Name)
	if number == 0 || obj["type"] != k.o.Label {
		return nil // carries our labels but is not ours
	}
	revision := effect.At[string](obj, "metadata", "annotations", revisionAnnotation)
	p := &part{content: content{sums: map[string][sha256.Size]byte{}}}
	p.seen(obj)
	p.revision, _ = strconv.ParseInt(revision, 10, 64)
	m := modules[module]
	if m == nil {
		m = &keptModule{parts: map[int]*part{}}
		modules[module] = m
		out[module] = map[string][]byte{}
	}
	m.revision = max(m.revision, p.revision)
	data, _ := obj["data"].(map[string]any)
	for encoded, v := range data {
		text, _ := v.(string)
		value, err := base64.StdEncoding.DecodeString(text)
		key, ok := decodeKey(encoded)
		switch bad := err != nil || !ok; {
		case bad && k.o.Label != KeptLabel:
			continue // somebody else's: it stays
		case bad:
			return &keptError{fmt.Sprintf("%s, which keeps data of module %s, cannot be read at key %q: restore the Secret, or delete it to start without that data", ref, module, encoded)}
		}
		if m.newest(key, p.revision) {
			out[module][key] = value
		}
		p.sums[key] = sha256.Sum256(value)
	}
	m.parts[number] = p
	return nil
}

// newest says whether no part that was read so far holds a newer value of key.
func (m *keptModule) newest(key string, revision int64) bool {
	for _, p := range m.parts {
		if _, ok := p.sums[key]; ok && p.revision >= revision {
			return false
		}
	}
	return true
}

// Save makes data the whole of what is kept of a module: keys that are not in it
// go away, and with the last key the Secrets. It writes what differs from what is
// stored and nothing else. A crash in between leaves every key in its old or new
// value. A value over 900 KiB is refused before anything is written.
func (k *Kept) Save(ctx context.Context, module string, data map[string][]byte) error {
	if k.o.Label == KeptLabel && len(validation.IsDNS1123Label(module)) > 0 {
		return fmt.Errorf("module %q: data of a module with this name cannot be kept: use lower case letters, digits and dashes, 63 at most", module)
	}
	if err := k.ensureLoaded(ctx); err != nil {
		return err
	}
	m := k.lock(module)
	defer m.mu.Unlock()
	if err := k.settle(ctx, module, m); err != nil {
		return k.notKept(module, err)
	}
	was := m.last
	if was == nil {
		was = m.unsure()
	}
	changed, gone := was.differs(data)
	if err := keepable(module, data, changed); err != nil {
		return err
	}
	m.last = nil // it is not sure what is stored, until all writes are done
	next := m.layout(was, data, changed, gone, false)
	changes := next.changes()
	if messages := messagesOf(changed); len(changes) > 1 && len(messages) > 0 {
		first := m.layout(was, data, messages, nil, true)
		if err := k.putAll(ctx, module, m, first.changes(), data); err != nil {
			return err
		}
		next = m.layout(first.saved(messages, nil), data, changed, gone, false)
		changes = next.changes()
	}
	if err := k.putAll(ctx, module, m, changes, data); err != nil {
		return err
	}
	m.last = next.saved(changed, gone)
	if len(m.parts) == 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.modules, module)
	}
	return nil
}

// messagesOf are the keys of messages. If a save takes several writes, these come first: a crash in between sends a
// message twice rather than never.
func messagesOf(keys []string) []string {
	other := func(key string) bool { return !strings.HasPrefix(key, effect.KeptMessage) }
	return slices.DeleteFunc(slices.Clone(keys), other)
}

// putAll writes Secrets, one after the other.
func (k *Kept) putAll(ctx context.Context, module string, m *keptModule, changes []change, data map[string][]byte) error {
	if len(changes) > 0 {
		// Counted before the first write: one that fails may have been carried
		// out all the same.
		m.revision++
	}
	for _, ch := range changes {
		if err := k.put(ctx, module, m, ch, data); err != nil {
			return k.notKept(module, err)
		}
	}
	return nil
}

// lock returns what is stored of a module, for its next save alone.
func (k *Kept) lock(module string) *keptModule {
	for {
		k.mu.Lock()
		m := k.modules[module]
		if m == nil {
			m = &keptModule{parts: map[int]*part{}}
			k.modules[module] = m
		}
		m.room = k.o.Room
		k.mu.Unlock()
		m.mu.Lock()
		k.mu.Lock()
		current := k.modules[module] == m // else it was forgotten, or read anew, meanwhile
		k.mu.Unlock()
		if current {
			return m
		}
		m.mu.Unlock()
	}
}

// notKept is the error of a save. Of another writer it tells, and what is stored is read
// anew before the next save.
func (k *Kept) notKept(module string, err error) error {
	if k.o.Label == KeptLabel {
		err = fmt.Errorf("module %s: its values and state cannot be kept: %w", module, err)
	}
	if errors.Is(err, ErrOtherWriter) {
		if k.o.Conflict != nil {
			k.o.Conflict(err) // before anything else can be written
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.loaded = false
	}
	return err
}

func (k *Kept) ensureLoaded(ctx context.Context) error {
	k.mu.Lock()
	loaded := k.loaded
	k.mu.Unlock()
	if loaded {
		return nil
	}
	_, err := k.Load(ctx)
	return err
}

// partName is the name of a module's Secret by number, from 1.
func (k *Kept) partName(module string, number int) string {
	if k.o.Label != KeptLabel {
		return k.o.Name + "-" + strconv.Itoa(number)
	}
	name := k.o.Name + "-kept-" + module
	if number > 1 {
		name += "." + strconv.Itoa(number)
	}
	return name
}

// partNumber is the inverse of partName; 0 means that it is no such name.
func (k *Kept) partNumber(module, name string) int {
	number, _ := strconv.Atoi(name[strings.LastIndexAny(name, ".-")+1:])
	for _, n := range []int{1, number} {
		if module != "" && n > 0 && k.partName(module, n) == name {
			return n
		}
	}
	return 0
}
