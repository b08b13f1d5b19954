package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// walk applies one set at random while processes die and others edit, copy and delete.
type walk struct {
	*farWorld
	r *rand.Rand
	// wanted are the members of the last apply that has succeeded; theirs are objects of others,
	// which nobody may delete.
	wanted []map[string]any
	theirs map[string]string // name → uid
	// unmarked have lost their labels, lost have lost them before this process began.
	unmarked, lost map[string]bool
}

func textRef(obj map[string]any) string {
	ref := effect.RefOf(obj)
	return fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name)
}

func (w *walk) some() (out []map[string]any) {
	for i := range 8 {
		if w.r.IntN(2) == 0 {
			continue
		}
		ns, name := string("abc"[i%3]), fmt.Sprint("m", i)
		obj := configMap(ns, name)
		switch i {
		case 2, 3:
			obj = account(ns, name)
		case 5:
			obj["kind"] = "Secret"
			delete(obj, "data")
		}
		out = append(out, obj)
	}
	return out
}

// live is one of the members that are there, or nil.
func (w *walk) live() map[string]any {
	names := slices.DeleteFunc(w.names(), func(n string) bool { _, theirs := w.theirs[n]; return theirs })
	if len(names) == 0 {
		return nil
	}
	kind, rest, _ := strings.Cut(names[w.r.IntN(len(names))], " ")
	ns, name, _ := strings.Cut(rest, "/")
	return w.get(effect.Ref{APIVersion: "v1", Kind: kind, Namespace: ns, Name: name})
}

func (w *walk) step() {
	obj := w.live()
	switch w.r.IntN(7) {
	case 0:
		w.begin()
	case 1:
		if obj != nil {
			w.must("them", effect.Write{Kind: effect.WriteDelete, Ref: effect.RefOf(obj)})
		}
	case 2:
		if obj != nil {
			w.must("them", effect.Write{Kind: effect.WritePatch, Ref: effect.RefOf(obj), Patch: &effect.Patch{Type: effect.PatchMerge,
				Body: map[string]any{"metadata": map[string]any{"labels": nil, "annotations": map[string]any{"theirs": "1"}}}}})
			w.unmarked[textRef(obj)] = true
		}
	case 3: // with labels, annotations and field managers
		if obj != nil {
			obj, metadata := effect.WithMetadata(obj)
			metadata["name"] = fmt.Sprint("copy", w.r.IntN(3))
			delete(metadata, "uid")
			delete(metadata, "resourceVersion")
			if w.theirs[textRef(obj)] == "" {
				w.must("them", effect.Write{Kind: effect.WriteCreate, Ref: effect.RefOf(obj), Object: obj})
				w.must("them", effect.Write{Kind: effect.WritePatch, Ref: effect.RefOf(obj), Patch: &effect.Patch{Type: effect.PatchMerge,
					Body: map[string]any{"metadata": map[string]any{"managedFields": metadata["managedFields"]}}}})
				if apply.FieldsOf(w.get(effect.RefOf(obj)), "starling/web/f", "") == nil {
					w.t.Fatal("no copy of the field managers")
				}
				w.theirs[textRef(obj)] = uidOf(w.get(effect.RefOf(obj)))
			}
		}
	case 4:
		w.api.dies(1+w.r.IntN(6), w.r.IntN(2) == 0)
		w.api.writes = 0
		if _, err := w.apply(w.some()...); err != nil {
			w.begin()
		} // else the next apply is as good
	}
	objects := w.some()
	w.api.dies(0, false)
	if _, err := w.apply(objects...); err != nil {
		w.t.Fatal(err)
	}
	w.wanted = objects
	for _, obj := range objects {
		delete(w.unmarked, textRef(obj))
		delete(w.lost, textRef(obj))
	}
}

// begin ends the process and begins another one.
func (w *walk) begin() {
	for name := range w.unmarked {
		w.lost[name] = true
	}
	w.restart()
}

func (w *walk) check() {
	w.t.Helper()
	there := w.names()
	for name, uid := range w.theirs {
		kind, rest, _ := strings.Cut(name, " ")
		ns, short, _ := strings.Cut(rest, "/")
		obj, err := w.reader().Get(context.Background(), effect.Ref{APIVersion: "v1", Kind: kind, Namespace: ns, Name: short})
		if err != nil || obj == nil || uidOf(obj) != uid {
			w.t.Errorf("%s of somebody else has gone: %v", name, err)
		}
	}
	want := map[string]bool{}
	for _, obj := range w.wanted {
		if want[textRef(obj)] = true; !slices.Contains(there, textRef(obj)) {
			w.t.Errorf("%s is not there", textRef(obj))
		}
	}
	for _, name := range there {
		if _, theirs := w.theirs[name]; !want[name] && !theirs && !w.lost[name] {
			w.t.Errorf("%s stays", name)
		}
	}
	if quiet, err := w.apply(w.wanted...); err != nil || slices.ContainsFunc(quiet, func(r string) bool { return !strings.HasPrefix(r, "LIST ") && !strings.HasPrefix(r, "GET ") }) {
		w.t.Errorf("once more: %q, %v", quiet, err)
	}
	for _, record := range w.records() {
		if record != w.writer.recordOf("starling/web/f").Name {
			w.t.Errorf("there is the record %s", record)
		}
	}
}

// Whatever others do and wherever processes die, a set ends as it is listed; what others have made, copies
// of members with all their marks among it, is never deleted.
func TestSetsAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := &walk{farWorld: newFarWorld(t), r: rand.New(rand.NewPCG(seed, 1)), theirs: map[string]string{}, unmarked: map[string]bool{}, lost: map[string]bool{}}
			for range 25 {
				if w.step(); t.Failed() {
					break
				}
				w.check()
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}
