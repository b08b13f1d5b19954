package cluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// A change of the user's config never overwrites what the user does meanwhile.
func TestTheUsersConfigIsChanged(t *testing.T) {
	api := apitest.New(t)
	w := NewWriter(WriterOptions{Client: newClient(t, api)})
	text := func() string {
		obj := api.Object("v1", "ConfigMap", "a", "x")
		if obj == nil {
			return "none"
		}
		section, _ := obj["data"].(map[string]any)["web"].(string)
		return section
	}
	change := func(path string, v, was any) error {
		return w.Write(context.Background(), "starling", effect.Write{Kind: effect.WriteConfig, Ref: configRef,
			Config: &effect.ConfigChange{Key: "web", Path: strings.Split(path, "."), Value: v, Was: was, Create: true}})
	}
	if err := change("password", "a", nil); err != nil || text() != "password: a\n" {
		t.Fatalf("made: %v\n%s", err, text())
	}
	if err := change("password", "a", nil); err != nil || api.Count("patch configmaps") != 0 {
		t.Errorf("the same again: %v", err)
	}

	// The user edits another value between read and write.
	edits := 1
	api.OnRequest(func(r *http.Request) {
		if r.Method == http.MethodPatch && edits > 0 {
			edits--
			obj := configMap("a", "x")
			obj["data"] = map[string]any{"web": "# mine\npassword: a\nreplicas: 3\n", "other": "x: 1\n"}
			api.Put(obj)
		}
	})
	if err := change("tls.mode", "auto", nil); err != nil || text() != "# mine\npassword: a\nreplicas: 3\ntls:\n  mode: auto\n" {
		t.Errorf("beside an edit: %v\n%s", err, text())
	}
	if n := api.Count("patch configmaps"); n != 2 {
		t.Errorf("%d patches, want 2", n)
	}

	// The user edits this very value.
	if err := change("replicas", int64(5), int64(2)); !errors.Is(err, values.ErrConfigMoved) || !strings.Contains(text(), "replicas: 3\n") {
		t.Errorf("against an edit: %v\n%s", err, text())
	}
	api.Remove("v1", "ConfigMap", "a", "x")
	err := w.Write(context.Background(), "starling", effect.Write{Kind: effect.WriteConfig, Ref: configRef,
		Config: &effect.ConfigChange{Key: "web", Path: []string{"a"}, Value: "b"}})
	if err == nil || text() != "none" {
		t.Errorf("one that is gone: %v\n%s", err, text())
	}
}

// spec.values of a Module object are changed by a patch that leaves all else alone.
func TestValuesOfAModuleObjectAreChanged(t *testing.T) {
	live := map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"},
		"spec": map[string]any{"enabled": true, "values": map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}}}}
	wr := effect.Write{Kind: effect.WriteConfig, Ref: effect.Ref{APIVersion: effect.ModuleAPIVersion, Kind: effect.ModuleKind, Name: "web"},
		Config: &effect.ConfigChange{Key: "web", Path: []string{"a"}, Value: map[string]any{"c": int64(3)}, Was: map[string]any{"b": int64(1), "c": int64(2)}, Object: true}}
	next, err := configWrite(wr, live)
	if err != nil {
		t.Fatal(err)
	}
	values := next.Patch.Body.(map[string]any)["spec"].(map[string]any)["values"].(map[string]any)["a"].(map[string]any)
	if b, there := values["b"]; !there || b != nil || values["c"] != int64(3) || *next.Unchanged != (effect.Unchanged{ResourceVersion: "7", UID: "u"}) {
		t.Errorf("%+v", next)
	}
	if _, err := configWrite(wr, nil); err == nil {
		t.Error("it is made anew")
	}
}
