package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// recordWrite bounds one write of the records.
	recordWrite = 30 * time.Second
	// recordTries is how often a write is tried that met a change of somebody else.
	recordTries = 5
	// recordRoom is how much a Secret holds before new records go to the next one.
	recordRoom = 128 << 10
	// recordLabel is on the Secrets. Its value is the instance's.
	recordLabel = "starling.dev/releases"
)

// records is the list of what is installed where, in Secrets of the operator's namespace: key
// "<namespace>.<release>", value a record in JSON. An uninstall needs no right to list Secrets
// elsewhere.
//
// Many releases are recorded at once, at the first start. A record that comes while a
// write is under way goes into the next one, together.
type records struct {
	kept           *cluster.Kept
	name, instance string
	// before holds the ConfigMap of this name in which earlier versions kept records.
	before corev1client.ConfigMapInterface
	// turn is held by the one who reads or writes. Under it moved says that the ConfigMap holds nothing.
	turn  chan struct{}
	moved bool

	mu sync.Mutex
	// data is what is stored; nil before the first read. It is not changed.
	data map[string][]byte
	// next collects what the next write will hold.
	next *batch
}

// batch is one write: key → JSON, nil to remove. How it has ended is noted under the turn.
type batch struct {
	changes map[string][]byte
	done    bool
	err     error
}

func (m *Manager) newRecords() *records {
	name := m.o.Name + "-releases"
	return &records{
		name: name, instance: m.o.Instance, before: m.core.ConfigMaps(m.o.Namespace), turn: make(chan struct{}, 1),
		kept: cluster.NewKept(cluster.KeptOptions{
			Client: m.o.Client, Namespace: m.o.Namespace, Name: name, Instance: m.o.Instance,
			Label: recordLabel, Room: recordRoom,
		}),
	}
}

// Installed lists what is recorded, by namespace and name: every release that this instance may have installed. A
// record whose release is gone is possible (Uninstall then removes it), a release without a record is not. Entries
// that cannot be read are logged and left out.
func (m *Manager) Installed(ctx context.Context) ([]Ref, error) {
	if err := m.records.inTurn(ctx, m.records.load); err != nil {
		return nil, err
	}
	return m.installed(), nil
}

// installed is Installed, as far as is known.
func (m *Manager) installed() (refs []Ref) {
	data := m.records.stored()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		var ref Ref
		if err := json.Unmarshal(data[key], &ref); err != nil || recordKey(ref) != key {
			m.o.Log.Warn().Str("key", key).Msgf("an entry of the Secrets %s-… is not a record of a release: left alone", m.records.name)
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}

// record is what is kept of one release.
type record struct {
	Ref
	// Left are objects that the release no longer holds and that are still to be deleted.
	Left []chart.Object `json:"left,omitempty"`
	// Digests stand for those on the revision, see [digests].
	Digests *digests `json:"digests,omitempty"`
	// Objects are those of a revision, without Seen; nil when they are not known.
	Objects *Objects `json:"objects,omitempty"`
	// Unknown are fields that the API server has dropped from the objects of the last revision, and what is applied in
	// another way than the chart has it.
	Unknown []string `json:"unknown,omitempty"`
}

// digests are those of a revision whose inputs have changed since it was made, and whose
// manifest has not. They stand in the record: the revision's Secret holds chart, values and
// manifest, up to 1 MiB, which the API server would store anew for 60 characters.
type digests struct {
	// Of is the uid of the revision's Secret.
	Of       string `json:"of"`
	Inputs   string `json:"inputs"`
	Manifest string `json:"manifest"`
	Chart    string `json:"chart,omitempty"`
}

// noted returns a revision with the digests that are recorded of it.
func (m *Manager) noted(ctx context.Context, ref Ref, last revision) (revision, error) {
	if last.Number == 0 {
		return last, nil
	}
	if last.Status == helm.StatusUninstalling {
		rel, _, err := m.read(ctx, ref, last.Number)
		last.Whole = err == nil && whole(rel)
	}
	rec, err := m.records.get(ctx, ref)
	if err != nil || rec.Digests == nil || rec.Digests.Of != last.UID {
		return last, err
	}
	last.Labels = maps.Clone(last.Labels)
	delete(last.Labels, LabelBack) // it is as its inputs say now
	last.Labels[LabelInputs], last.Labels[LabelManifest], last.Labels[LabelChart] = rec.Digests.Inputs, rec.Digests.Manifest, rec.Digests.Chart
	return last, nil
}

func recordKey(ref Ref) string { return ref.Namespace + "." + ref.Name }

// set notes that the release of rec may be installed. It returns when that is written
// down; what is recorded already costs nothing.
func (r *records) set(ctx context.Context, rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if len(data) > effect.MaxKept {
		return fmt.Errorf("recording a release: its record has %d KiB, more than the %d KiB that fit into a Secret: delete the objects by hand that it could not delete",
			len(data)>>10, effect.MaxKept>>10)
	}
	return r.change(ctx, recordKey(rec.Ref), data)
}

// get reads the record of ref; without one, nothing is left of the release. The records are read once.
func (r *records) get(ctx context.Context, ref Ref) (record, error) {
	if r.stored() == nil {
		if err := r.inTurn(ctx, r.loadOnce); err != nil {
			return record{Ref: ref}, err
		}
	}
	var rec record
	if err := json.Unmarshal(r.stored()[recordKey(ref)], &rec); err != nil || rec.Ref != ref {
		return record{Ref: ref}, nil // not a record of ours: written anew
	}
	return rec, nil
}

func (r *records) stored() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data
}

// change puts one entry, nil to take it away, into the next write and returns when that has ended. The first one whose
// turn it is writes for all of them; one who gives up takes nobody with it.
func (r *records) change(ctx context.Context, key string, value []byte) error {
	r.mu.Lock()
	if r.next == nil {
		r.next = &batch{changes: map[string][]byte{}}
	}
	b := r.next
	b.changes[key] = value
	r.mu.Unlock()
	return r.inTurn(ctx, func(ctx context.Context) error {
		if b.done {
			return b.err
		}
		err := r.write(ctx, b)
		b.done, b.err = err == nil || ctx.Err() == nil, err
		return err
	})
}

// inTurn calls f while nobody else reads or writes.
func (r *records) inTurn(ctx context.Context, f func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
		return f(ctx)
	case <-ctx.Done():
		return fmt.Errorf("recording a release (%s): %w", r.name, context.Cause(ctx))
	}
}

func (r *records) loadOnce(ctx context.Context) error {
	if r.stored() != nil {
		return nil
	}
	return r.load(ctx)
}

// load reads all records. The ConfigMap counts for keys that no Secret has, until the next write moves them.
func (r *records) load(ctx context.Context) error {
	cm, err := r.before.Get(ctx, r.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the records of releases (ConfigMap %s): %w", r.name, err)
	}
	found, err := r.kept.Load(ctx)
	if err != nil {
		return fmt.Errorf("reading the records of releases (Secrets %s-…): %w", r.name, err)
	}
	data := map[string][]byte{}
	if cm != nil {
		for key, text := range cm.Data {
			data[key] = []byte(text)
		}
	}
	r.moved = len(data) == 0
	maps.Copy(data, found[r.instance])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = data
	return nil
}

// write writes a batch, and anew what somebody has taken out of the Secrets. The ConfigMap is emptied once all that it
// holds is in them.
func (r *records) write(ctx context.Context, b *batch) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, recordWrite, errTimeout(recordWrite))
	defer cancel()
	r.mu.Lock()
	if r.next == b {
		r.next = nil
	}
	r.mu.Unlock()
	if err := r.loadOnce(ctx); err != nil {
		return err
	}
	data := maps.Clone(r.stored())
	maps.Copy(data, b.changes)
	maps.DeleteFunc(data, func(_ string, value []byte) bool { return value == nil })
	for range recordTries {
		if err = r.kept.Save(ctx, r.instance, data); !errors.Is(err, cluster.ErrOtherWriter) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("recording releases (Secrets %s-…): %w", r.name, err)
	}
	r.mu.Lock()
	r.data = data
	r.mu.Unlock()
	if r.moved {
		return nil
	}
	_, err = r.before.Patch(ctx, r.name, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{})
	if r.moved = err == nil || apierrors.IsNotFound(err); !r.moved {
		return fmt.Errorf("recording releases: they are in Secrets now, and ConfigMap %s cannot be emptied: %w", r.name, err)
	}
	return nil
}
