package release

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
)

const (
	// recordWrite bounds one write of the records.
	recordWrite = 30 * time.Second
	// recordTries is how often a write that met another one is tried.
	recordTries = 5
)

// records is the list of what is installed where, in the operator's namespace: key
// "<namespace>.<release>", value a record in JSON. An uninstall needs no right to list Secrets
// elsewhere. They stand in a ConfigMap and, once that is full, in Secrets beside it, see [shard].
//
// Many releases are recorded at once, at the first start. A record that comes while a
// write is under way goes into the next one, together.
type records struct {
	// stopped ends all writing.
	stopped   context.Context
	core      corev1client.CoreV1Interface
	namespace string
	name      string
	instance  string

	mu sync.Mutex
	// known are the shards as they stand; nil before the first read and after a
	// write that failed. Neither the list nor what it holds is changed.
	known []shard
	// next collects what the next write will hold.
	next *batch
	// writing says that a writer is at work.
	writing bool
}

// batch is one write: key → JSON, nil to remove.
type batch struct {
	changes map[string]*string
	done    chan struct{}
	err     error
	// refused are the keys that cannot be written, with the reason.
	refused map[string]error
}

// Installed lists what is recorded, by namespace and name: every release that this instance may have installed. A
// record whose release is gone is possible (Uninstall then removes it), a release without a record is not. Entries
// that cannot be read are logged and left out.
func (m *Manager) Installed(ctx context.Context) ([]Ref, error) {
	shards, err := m.records.load(ctx)
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for _, s := range shards {
		for _, key := range slices.Sorted(maps.Keys(s.data)) {
			var ref Ref
			if err := json.Unmarshal([]byte(s.data[key]), &ref); err != nil || recordKey(ref) != key {
				m.o.Log.Warn().Str(s.kind(), s.name).Str("key", key).Msg("not a record of a release: left alone")
				continue
			}
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(recordKey(a), recordKey(b)) })
	return refs, nil
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
		rel, err := m.Last(ctx, ref.Namespace, ref.Name)
		last.Whole = err == nil && rel != nil && whole(rel)
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
	text := string(data)
	return r.change(ctx, recordKey(rec.Ref), &text)
}

// get reads the record of ref; without one, nothing is left of the release. The records are read once.
func (r *records) get(ctx context.Context, ref Ref) (record, error) {
	if r.shards() == nil {
		if err := r.join(ctx, "", nil); err != nil {
			return record{Ref: ref}, err
		}
	}
	var rec record
	text, _ := valueOf(r.shards(), recordKey(ref))
	if err := json.Unmarshal([]byte(text), &rec); err != nil || rec.Ref != ref {
		return record{Ref: ref}, nil // not a record of ours: written anew
	}
	return rec, nil
}

// shards are the records as they stand, as far as is known.
func (r *records) shards() []shard {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

// change puts one entry, nil to take it away, into the next write and waits for it. A value that is there already costs
// nothing.
func (r *records) change(ctx context.Context, key string, value *string) error {
	r.mu.Lock()
	have, is := valueOf(r.known, key)
	same := r.known != nil && !r.writing && r.next == nil && is == (value != nil) && (value == nil || have == *value)
	r.mu.Unlock()
	if same {
		return nil
	}
	return r.join(ctx, key, value)
}

// join adds to the next write and waits for it; without a key it waits for what is read.
func (r *records) join(ctx context.Context, key string, value *string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	if r.next == nil {
		r.next = &batch{changes: map[string]*string{}, done: make(chan struct{})}
	}
	b := r.next
	if key != "" {
		b.changes[key] = value
	}
	if !r.writing {
		r.writing = true
		go r.write()
	}
	r.mu.Unlock()
	select {
	case <-b.done:
		return cmp.Or(b.err, b.refused[key])
	case <-ctx.Done():
		return fmt.Errorf("recording a release (%s): %w", r.name, context.Cause(ctx))
	}
}

// write carries out batches until there is none.
func (r *records) write() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.next != nil {
		b := r.next
		r.next = nil
		known := r.known
		r.mu.Unlock()
		known, err := r.writeBatch(known, b)
		r.mu.Lock()
		r.known, b.err = known, err
		close(b.done)
	}
	r.writing = false
}

// writeBatch writes what differs from known and returns what the shards hold then.
func (r *records) writeBatch(known []shard, b *batch) ([]shard, error) {
	ctx, cancel := context.WithTimeout(r.stopped, recordWrite)
	defer cancel()
	var err error
	if known == nil {
		if known, err = r.load(ctx); err != nil {
			return nil, err
		}
	}
	var after []shard
	after, b.refused = r.place(known, b.changes)
	for i, s := range after {
		var before map[string]string
		if i < len(known) {
			before = known[i].data
		}
		if maps.Equal(s.data, before) {
			continue
		}
		if err := r.writeShard(ctx, s, before); err != nil {
			return nil, fmt.Errorf("recording releases (%s %s): %w", s.kind(), s.name, err)
		}
	}
	return after, nil
}

// drain waits until no write is under way.
func (r *records) drain(ctx context.Context) error {
	for {
		r.mu.Lock()
		writing := r.writing
		r.mu.Unlock()
		if !writing {
			return nil
		}
		if _ = r.join(ctx, "", nil); ctx.Err() != nil { // how a write ends is said to those who wait for it
			return fmt.Errorf("the records of releases are still being written: %w", ctx.Err())
		}
	}
}
