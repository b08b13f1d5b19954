package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/script"
)

// runExample runs one hook of an example on the objects of each watch, through its
// filters, with a live cluster that has these objects.
func runExample(ctx context.Context, t *testing.T, g *generation.Generation, id string, watched map[string][]map[string]any, live reader) (effect.Effects, error) {
	t.Helper()
	h := g.Hook(id)
	if h == nil {
		t.Fatalf("no hook %s", id)
	}
	m := g.Modules[h.Module]
	if h.Module == "global" {
		m = g.Global
	}
	snapshots, synced := map[string][]starlark.Value{}, map[string]bool{}
	for _, b := range h.Bindings {
		if b.Watch == nil {
			continue
		}
		synced[b.Name] = true
		snapshots[b.Name] = []starlark.Value{}
		filter := hook.Filter(ctx, func() *script.Host { return g.Host }, b.Watch, noLog{})
		for _, o := range watched[b.Name] {
			v, keep, err := filter(o)
			if err != nil {
				t.Fatal(err)
			}
			if keep {
				snapshots[b.Name] = append(snapshots[b.Name], v)
			}
		}
	}
	r := hook.Run(ctx, hook.Request{
		Host: g.Host, Module: m, Hook: h, Snapshots: snapshots, Synced: synced, Attempt: 1,
		Now: time.Unix(0, 0), Namespace: "starling-system", Reader: live, Log: noLog{},
		Compose: func([]effect.ValueOp) (map[string]any, error) { return map[string]any{}, nil },
		Scope:   func(string, string) (bool, error) { return true, nil },
	})
	return r.Effects, r.Err
}

// reader is a live cluster: objects by "namespace/name".
type reader map[string]map[string]any

func (r reader) Get(_ context.Context, ref effect.Ref) (map[string]any, error) {
	return r[ref.Namespace+"/"+ref.Name], nil
}

func (r reader) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return nil, fmt.Errorf("no example lists")
}

func TestCountNodes(t *testing.T) {
	node := func(name, ready string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": ready}}},
		}
	}
	fresh := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "fresh"}}
	g := loadExample(t, "quickstart")
	got, err := runExample(t.Context(), t, g, "global/cluster.star:count_nodes", map[string][]map[string]any{
		"nodes": {node("a", "True"), node("b", "False"), node("c", "True"), fresh},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"global.readyNodes": int64(2), "global.nodeNames": []any{"a", "c"}}
	set := map[string]any{}
	for _, op := range got.Values {
		set[op.Path[0]+"."+op.Path[1]] = op.Value
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
}

// The secret-copier is run until it has nothing more to write, on a cluster that
// does what it says.
type secrets struct {
	t          *testing.T
	g          *generation.Generation
	namespaces []string
	objects    reader
}

func newSecrets(t *testing.T, namespaces ...string) *secrets {
	return &secrets{t: t, g: loadExample(t, "secret-copier"), namespaces: namespaces, objects: reader{}}
}

func (s *secrets) put(ns, name, token string, labels map[string]any) map[string]any {
	o := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": name, "namespace": ns, "labels": labels},
		"data":     map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))},
	}
	s.objects[ns+"/"+name] = o
	return o
}

func label(o map[string]any, key string) any {
	labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
	return labels[key]
}

// run runs the hook once, carries its writes out and returns them.
func (s *secrets) run() []string {
	s.t.Helper()
	watched := map[string][]map[string]any{}
	var keys []string
	for key := range s.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		o := s.objects[key]
		if label(o, "starling.dev/copy") == "true" {
			watched["sources"] = append(watched["sources"], o)
		}
		if label(o, "starling.dev/copied-by") == "secret-copier" {
			watched["copies"] = append(watched["copies"], o)
		}
	}
	for _, ns := range s.namespaces {
		watched["namespaces"] = append(watched["namespaces"], map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}, "status": map[string]any{"phase": "Active"},
		})
	}
	got, err := runExample(s.t.Context(), s.t, s.g, "secret-copier/hooks/copy.star:copy_secrets", watched, s.objects)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, w := range got.Writes {
		key := w.Ref.Namespace + "/" + w.Ref.Name
		out = append(out, string(w.Kind)+" "+key)
		if w.Kind == effect.WriteDelete {
			delete(s.objects, key)
		} else {
			s.objects[key] = w.Object
		}
	}
	return out
}

func (s *secrets) expect(what string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.run()); diff != "" {
		s.t.Errorf("%s: %s", what, diff)
	}
	if left := s.run(); len(left) > 0 {
		s.t.Errorf("%s: not quiet afterwards: %q", what, left)
	}
}

func TestSecretCopier(t *testing.T) {
	s := newSecrets(t, "default", "kube-system", "web")
	wanted := map[string]any{"starling.dev/copy": "true"}
	s.expect("nothing to copy")

	s.put("default", "registry", "abc", wanted)
	s.expect("a source", "apply web/registry")
	s.namespaces = append(s.namespaces, "new")
	s.expect("a new namespace", "apply new/registry")
	s.put("default", "registry", "def", wanted)
	s.expect("another token", "apply web/registry", "apply new/registry")
	s.objects["new/registry"]["data"] = map[string]any{"token": "eA=="}
	s.expect("a copy that someone changed", "apply new/registry")
	delete(s.objects, "web/registry")
	s.expect("a copy that someone deleted", "apply web/registry")
	s.objects["default/registry"]["type"] = "example.com/other"
	s.expect("another type", "delete web/registry", "apply web/registry", "delete new/registry", "apply new/registry")

	s.put("web", "own", "mine", nil)
	s.put("default", "own", "theirs", wanted)
	s.expect("a Secret of that name that is not ours", "apply new/own")
	fake := s.put("new", "fake", "x", map[string]any{"starling.dev/copied-by": "secret-copier"})
	s.expect("our label without our annotation")
	if _, there := s.objects["new/fake"]; !there || fake["data"] == nil {
		t.Error("a Secret that is no copy was touched")
	}

	s.put("web", "registry2", "first", wanted)
	s.put("default", "registry2", "second", wanted)
	s.expect("two sources with one name", "apply new/registry2")
	delete(s.objects, "default/registry2")
	s.expect("one of the two goes", "apply default/registry2", "apply new/registry2")

	token := s.put("default", "account", "x", wanted)
	token["type"] = "kubernetes.io/service-account-token"
	s.expect("a Secret that the API lets nobody copy")

	delete(s.objects, "default/registry")
	s.expect("a source that goes", "delete new/registry", "delete web/registry")
}

func TestSecretCopierWaitsForAllItsWatches(t *testing.T) {
	g := loadExample(t, "secret-copier")
	h := g.Hook("secret-copier/hooks/copy.star:copy_secrets")
	copied := map[string]any{"namespace": "web", "name": "a", "from": "default/a", "leaving": false}
	dict := starlark.NewDict(len(copied))
	for k, v := range copied {
		value := starlark.Value(starlark.Bool(false))
		if text, ok := v.(string); ok {
			value = starlark.String(text)
		}
		if err := dict.SetKey(starlark.String(k), value); err != nil {
			t.Fatal(err)
		}
	}
	dict.Freeze()
	r := hook.Run(t.Context(), hook.Request{
		Host: g.Host, Module: g.Modules["secret-copier"], Hook: h, Attempt: 1, Namespace: "starling-system", Log: noLog{},
		Snapshots: map[string][]starlark.Value{"sources": nil, "copies": {dict}, "namespaces": nil},
		Synced:    map[string]bool{"sources": false, "copies": true, "namespaces": true},
	})
	if r.Err != nil || len(r.Effects.Writes) > 0 {
		t.Errorf("with half a picture: %v, %v", r.Effects.Writes, r.Err)
	}
}

var _ builtins.Reader = reader{}
