package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// SetLabel marks the members of a set of objects that a hook applies. Its value
	// is unique for instance, hook and name of the set.
	SetLabel = "starling.dev/set"
	// SetType is the type of the Secrets that record which objects a set consists
	// of.
	SetType = "starling.dev/set"
	// setAnnotation says for people whose set a record is of.
	setAnnotation = "starling.dev/set-of"
	// keepAnnotation marks the record of a set that stays when its hook goes.
	keepAnnotation = "starling.dev/set-keep"
	// setKey holds the members.
	setKey = "members"
)

// set is what is recorded of one set: every object that it may have made. A record
// is written before the first object that it did not name, and shortened after the
// last one that is to go has gone, so a crash in between forgets nothing.
type set struct {
	// Guarded by the writer's mutex:
	users int    // that apply it or wait to
	of    string // as in setAnnotation
	owned bool
	keeps bool   // as in keepAnnotation
	at    uint64 // which of all applies was the last one of this set

	mu      sync.Mutex // one apply at a time
	loaded  bool
	members []member // in the order of the names of their objects
}

// member is an object that the set has made, or, without a uid, may have made.
type member struct {
	effect.Ref
	UID string `json:"uid,omitempty"`
}

// lockSet returns a set for one who applies it; unlock must be called. One that is
// empty, or of which nothing is known, is not kept in memory: names of sets come and go
// with the objects that hooks are about.
func (w *Writer) lockSet(id string) (s *set, unlock func()) {
	w.mu.Lock()
	s = w.sets[id]
	if s == nil {
		s = &set{}
		w.sets[id] = s
	}
	s.users++
	w.mu.Unlock()
	s.mu.Lock()
	return s, func() {
		w.mu.Lock()
		if s.users--; s.users == 0 && (!s.loaded || len(s.members) == 0) {
			delete(w.sets, id)
		}
		w.mu.Unlock()
		s.mu.Unlock()
	}
}

// setID is the value of the label: 32 characters.
func (w *Writer) setID(manager, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{w.o.Instance, manager, name}))
	return hex.EncodeToString(sum[:16])
}

// set applies the members and deletes what the set made before and does not list
// any more. Objects that it did not make are left alone: to list one is an error.
func (w *Writer) set(ctx context.Context, manager string, wr effect.Write) error {
	id := w.setID(manager, wr.Set.Name)
	s, unlock := w.lockSet(id)
	defer unlock()
	record := &setRecord{writer: w, id: id, of: manager + " " + wr.Set.Name, owned: wr.Owner != nil, keeps: wr.Set.Keep}
	w.mu.Lock()
	w.applied++
	s.of, s.owned, s.at = record.of, record.owned, w.applied
	w.mu.Unlock()
	if !s.loaded {
		members, keeps, err := record.read(ctx)
		if err != nil {
			return err
		}
		s.members, s.keeps, s.loaded = members, keeps, true
	}
	known := map[effect.Ref]string{}
	for _, m := range s.members {
		known[m.Ref] = m.UID
	}
	keep := func(all map[effect.Ref]string) error {
		next := membersOf(all)
		if slices.Equal(next, s.members) && (len(next) == 0 || s.keeps == record.keeps) {
			return nil
		}
		s.loaded = false // until it is certain what is stored
		if err := record.write(ctx, next); err != nil {
			return err
		}
		s.members, s.keeps, s.loaded = next, record.keeps, true
		return nil
	}

	recorded, all := s.members, maps.Clone(known)
	for _, m := range wr.Set.Members {
		all[m.Ref] = known[m.Ref]
	}
	if err := keep(all); err != nil {
		return err
	}
	a := &applying{writer: w, manager: manager, id: id, write: wr, known: known}
	now, err := a.apply(ctx, recorded)
	if err != nil {
		return fmt.Errorf("%w (%d of %d objects of set %q applied)", err, len(now), len(wr.Set.Members), wr.Set.Name)
	}
	listed := map[effect.Ref]bool{}
	for _, m := range wr.Set.Members {
		listed[anyVersion(m.Ref)] = true
	}
	gone := slices.DeleteFunc(slices.Clone(recorded), func(m member) bool {
		return listed[anyVersion(m.Ref)] // if only in another version of its API
	})
	if err := w.prune(ctx, manager, id, gone, a.seen, wr.Cause); err != nil {
		return fmt.Errorf("%w (set %q lists it no more)", err, wr.Set.Name)
	}
	return keep(now)
}

// isMember says whether the set has made an object: it is the very one that is
// recorded, or it carries the label.
func isMember(live map[string]any, id, uid string) bool {
	metadata, _ := live["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	return uid != "" && uidOf(live) == uid || labels[SetLabel] == id
}

func withLabel(obj map[string]any, key, value string) map[string]any {
	obj, metadata := withMetadata(obj)
	given, _ := metadata["labels"].(map[string]any)
	labels := maps.Clone(given)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[key] = value
	metadata["labels"] = labels
	return obj
}

// anyVersion is ref with the group in place of the API version.
func anyVersion(ref effect.Ref) effect.Ref {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	if group == ref.APIVersion {
		group = ""
	}
	ref.APIVersion = group
	return ref
}

func membersOf(all map[effect.Ref]string) []member {
	out := make([]member, 0, len(all))
	for ref, uid := range all {
		out = append(out, member{ref, uid})
	}
	slices.SortFunc(out, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// setRecord is the Secret that remembers a set. Its name is that of the instance
// and the set's id.
type setRecord struct {
	writer *Writer
	id, of string
	owned  bool
	keeps  bool
}

// recordPrefix is what the names of all records of the instance begin with.
func (w *Writer) recordPrefix() string { return w.o.Name + "-set-" }

func (r *setRecord) ref() effect.Ref {
	return effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: r.writer.o.Namespace, Name: r.writer.recordPrefix() + r.id}
}

func (r *setRecord) read(ctx context.Context) (members []member, keeps bool, err error) {
	obj, err := r.writer.o.Client.Get(ctx, r.ref())
	if err != nil || obj == nil {
		return nil, false, err
	}
	data, _ := obj["data"].(map[string]any)
	text, _ := data[setKey].(string)
	value, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(value, &members)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s, which records the objects of a set, cannot be read: restore it, or delete it and what carries the label %s=%s", r.ref(), SetLabel, r.id)
	}
	_, keeps = annotationsOf(obj)[keepAnnotation]
	return members, keeps, nil
}

func annotationsOf(obj map[string]any) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations
}

func (r *setRecord) write(ctx context.Context, members []member) error {
	if len(members) == 0 {
		_, err := r.writer.o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteDelete, Ref: r.ref()})
		return err
	}
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	if len(text) > valueLimit {
		return fmt.Errorf("a set of %d objects is too large to be recorded: split it", len(members))
	}
	ref := r.ref()
	annotations := map[string]any{setAnnotation: r.of}
	if r.owned {
		annotations[ownedAnnotation] = "true"
	}
	if r.keeps {
		annotations[keepAnnotation] = "true"
	}
	_, err = r.writer.o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": SetType,
		"metadata": map[string]any{
			"name": ref.Name, "namespace": ref.Namespace,
			"labels":      map[string]any{effect.InstanceLabel: r.writer.o.Instance},
			"annotations": annotations,
		},
		"data": map[string]any{setKey: base64.StdEncoding.EncodeToString(text)},
	}})
	return err
}
