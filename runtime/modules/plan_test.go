package modules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

var own = effect.Instance{Namespace: "ops", Name: "starling"}

func (s step) short() string {
	var out []string
	for text, is := range map[string]bool{"create": s.isNew, "patch": s.patch != nil, "delete": s.delete != nil, "status": s.status != nil} {
		if is {
			out = append(out, text)
		}
	}
	if len(out) == 2 && out[0] > out[1] {
		out[0], out[1] = out[1], out[0]
	}
	return strings.Join(out, " ")
}

func theWorld(o Object, now time.Time) *world {
	w := &world{instance: own, objects: map[string]Object{}, facts: map[string]Facts{"web": web(status.ModuleReady, 1)}, names: []string{"web"}, now: now,
		elsewhere: func(module string) bool { return module == "shop" }}
	if o.Name != "" {
		w.objects[o.Name] = o
	}
	return w
}

func TestWhatIsDoneAboutAnObject(t *testing.T) {
	_, ready := statusOf("ops/starling", web(status.ModuleReady, 1), 1, nil, noon).encode()
	ours := Object{Name: "web", UID: "1", Generation: 1, Label: "ops.starling", Status: ready}
	edit := func(change func(*Object)) Object { o := ours; change(&o); return o }
	for name, tt := range map[string]struct {
		o    Object
		want string
	}{
		"there is none":               {Object{}, "create status"},
		"it is as it should be":       {ours, ""},
		"its status was edited":       {edit(func(o *Object) { o.Status = `{"state":"fine"}` }), "status"},
		"a user has made it":          {edit(func(o *Object) { o.Label, o.Status = "", "" }), "patch"},
		"the label was taken off":     {edit(func(o *Object) { o.Label, o.Instance = "", "ops/starling" }), "patch"},
		"it shall reconcile":          {edit(func(o *Object) { o.Reconcile = "now" }), "patch"},
		"it is being deleted":         {edit(func(o *Object) { o.Deleting, o.Status = true, "" }), ""},
		"another instance has it":     {edit(func(o *Object) { o.Label, o.Status = "ops.other", "" }), ""},
		"it was given to another one": {edit(func(o *Object) { o.Instance, o.Status = "ops/other", "" }), ""},
	} {
		if s, _ := theWorld(tt.o, noon).ofModule("web", &entry{}); s.short() != tt.want {
			t.Errorf("%s: %q, want %q", name, s.short(), tt.want)
		}
	}
}

// An object of no module: one that nobody has written into goes after a while, others say so.
func TestAnObjectOfNoModule(t *testing.T) {
	for name, tt := range map[string]struct {
		o           Object
		first, then string
	}{
		"the module is gone":            {Object{Name: "wep", UID: "1", Label: "ops.starling"}, "", "delete"},
		"it is gone, and a user wrote":  {Object{Name: "wep", Label: "ops.starling", Says: true, Spec: `{"enabled":true}`}, "status", "status"},
		"a user named the wrong module": {Object{Name: "wep", Says: true, Spec: `{"enabled":true}`}, "", "status"},
		"another instance said so":      {Object{Name: "wep", Status: `{"state":"no module"}`}, "", ""},
		"another instance has it":       {Object{Name: "shop", UID: "1", Label: "ops.starling", Says: true}, "patch", "patch"},
		"it was handed over":            {Object{Name: "shop", UID: "1", Status: `{"instance":"ops/starling"}`}, "", ""},
		"a user keeps it here":          {Object{Name: "shop", UID: "1", Label: "ops.starling", Instance: "ops/starling"}, "", ""},
		"it is of another instance":     {Object{Name: "wep", Label: "ops.other"}, "", ""},
	} {
		e := &entry{}
		first, _ := theWorld(tt.o, noon).ofNone(tt.o, e)
		then, _ := theWorld(tt.o, noon.Add(goneFor)).ofNone(tt.o, e)
		if first.short() != tt.first || then.short() != tt.then {
			t.Errorf("%s: %q, then %q; want %q, then %q", name, first.short(), then.short(), tt.first, tt.then)
		}
		old := theWorld(tt.o, noon.Add(goneFor))
		old.stays = true
		if s, soon := old.ofNone(tt.o, e); s.short() != "" || soon || !e.gone.IsZero() {
			t.Errorf("%s, or of a newer tree: %q", name, s.short())
		}
		if then.status != nil && !strings.Contains(fmt.Sprint(then.status.Conditions), "did you mean web?") {
			t.Errorf("%s: %+v", name, then.status.Conditions)
		}
	}
}

// A state that goes by in less than a second is not written; a longer one is.
func TestAStateThatGoesBy(t *testing.T) {
	_, ready := statusOf("ops/starling", web(status.ModuleReady, 1), 1, nil, noon).encode()
	w := theWorld(Object{Name: "web", UID: "1", Generation: 1, Label: "ops.starling", Status: ready}, noon)
	f := w.facts["web"]
	f.Module.Upgrading = true
	w.facts["web"] = f
	e := &entry{}
	if s, soon := w.ofModule("web", e); s.short() != "" || !soon {
		t.Errorf("at once: %q, another look %t", s.short(), soon)
	}
	w.now = noon.Add(movingFor)
	if s, _ := w.ofModule("web", e); s.short() != "status" {
		t.Errorf("a second later: %q", s.short())
	}
}

// A status that the API server stores in another form is written once.
func TestAStatusThatIsStoredOtherwise(t *testing.T) {
	o := Object{Name: "web", UID: "1", Generation: 1, Label: "ops.starling", Status: `{"state":"ready"}`}
	w := theWorld(o, noon)
	e := &entry{}
	s, _ := w.ofModule("web", e)
	_, e.wrote = s.status.encode()
	e.status, e.answer = s.status, o.Status
	if s, _ := w.ofModule("web", e); s.short() != "" {
		t.Errorf("again: %q", s.short())
	}
}

func TestReadsWhatTheFilterKeeps(t *testing.T) {
	kept, keep, err := Filter(map[string]any{
		"metadata": map[string]any{
			"name": "web", "uid": "1", "generation": int64(4), "managedFields": []any{},
			"labels": map[string]any{effect.InstanceLabel: "ops.starling"}, "annotations": map[string]any{ReconcileAnnotation: "now"},
		},
		"spec": map[string]any{"enabled": false, "paused": true, "drift": "report", "values": map[string]any{"n": int64(9007199254740993)}},
	})
	o := Read(kept)
	if _, ours := o.Owner(own); !keep || err != nil || !ours || o.Reconcile != "now" || !o.Says {
		t.Errorf("%+v, %v", o, err)
	}
	c := o.Config()
	if c.Generation != 4 || c.Values != `{"n":9007199254740993}` || c.Enabled == nil || *c.Enabled || !c.Paused || c.Drift != "report" {
		t.Errorf("%+v", c)
	}
	if o := Read(nil); o.Name != "" || o.Says {
		t.Errorf("of nothing: %+v", o)
	}
}

// A change of the definition gives it another number, so that clusters get it, and this its digest.
func TestTheDefinitionHasANumber(t *testing.T) {
	const number, digest = "3", "14746c9aa6a36f19"
	sum := sha256.Sum256(Definition)
	if got := hex.EncodeToString(sum[:8]); got != digest || !strings.Contains(string(Definition), numberAnnotation+`: "`+number+`"`) {
		t.Errorf("crd.yaml has the digest %s: give it the next number, and note both here", got)
	}
}
