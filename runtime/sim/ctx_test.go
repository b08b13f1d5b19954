package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
)

// ctxTree has a hook of each trigger, named for its callback, and a controller.
var ctxTree = fstest.MapFS{
	"global/hooks/all.star": {Data: []byte(`
def run(ctx):
    pass

hook(run, name = "before_all", on = [before_all()])
hook(run, name = "after_all", on = [after_all()])
`)},
	"web/module.star":      {Data: []byte("module(grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"]), grant(\"v1\", \"Service\", verbs = [\"mutate\"]), grant(\"v1\", \"Namespace\", verbs = [\"finalize\"])])\n")},
	"web/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
	"web/templates/x.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")},
	"values.yaml":          {Data: []byte("webEnabled: true\n")},
	"web/hooks/triggers.star": {Data: []byte(`
def run(ctx):
    pass

def again(ctx):
    if ctx.attempt == 1 and ctx.events[0].type == "schedule":
        requeue("1s")

nodes = k8s.watch("v1", "Node", name = "nodes", keep = "both", old = True, filter = lambda o: {"role": o.get("metadata.labels.role")})
spaces = k8s.watch("v1", "Namespace", name = "spaces", labels = "team", keep = "both", old = True, filter = lambda o: {"team": o.metadata.labels.team})

others = k8s.watch("v1", "Node", name = "others", wakes = "all")

hook(run, name = "startup", on = [startup()])
hook(again, name = "schedule", on = [schedule("0 * * * *")])
hook(run, name = "k8s.watch", on = [nodes])
hook(run, name = "hook(for_each)", on = [spaces, others, schedule("0 * * * *")], for_each = "spaces", cleanup = run)
hook(run, name = "before_helm", on = [before_helm()])
hook(run, name = "after_helm", on = [after_helm()])
hook(run, name = "before_delete", on = [before_delete()])
hook(run, name = "after_delete", on = [after_delete()])
hook(run, name = "k8s.validate", on = [k8s.validate("v1", "Service", failure_policy = "fail")])
hook(run, name = "k8s.mutate", on = [k8s.mutate("v1", "Service", failure_policy = "fail")])
hook(run, name = "http.receive", on = [http.receive("/x", public = True)])
`)},
	"web/hooks/controller.star": {Data: []byte(`
def desired(ctx, parent):
    return [rolling([part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": parent.metadata.name}, "data": {"a": parent.get("metadata.annotations.a", "")}})], pause = pause)]

def tell(ctx, name):
    log.info(name, key = ctx.key, object = ctx.object.kind, children = [dir(c) for c in ctx.children], reads = dir(ctx.reads.nodes), has = dir(ctx))

def pause(ctx):
    tell(ctx, "rolling(pause)")

def status(ctx, parent):
    tell(ctx, "controller(status)")
    return {}

def cleanup(ctx, parent):
    tell(ctx, "controller(cleanup)")

def observe(ctx, parent):
    tell(ctx, "controller(observe)")
    return {"seen": parent.kind}

def act(ctx, parent):
    tell(ctx, "controller(act)")

controller("controller(desired)", parent = k8s.watch("v1", "Service", labels = "app"), desired = desired, owns = [owns("v1", "ConfigMap")],
    reads = {"nodes": k8s.watch("v1", "Node", name = "nodes")}, status = status, cleanup = cleanup, observe = observe, act = act)
`)},
}

// The table of ctx says what the runtime puts there, in each kind of function that is called with it.
func TestTableOfCtxIsWhatTheRuntimeGives(t *testing.T) {
	read, err := tree.Read(ctxTree, tree.Options{})
	w := world(t, read, err)
	seen := ctxSeen{fields: map[string]map[string]string{}, events: map[string]map[string]bool{}}
	w.Watch(func(hook, _ string, ctx starlark.Value) {
		name := hook[strings.IndexByte(hook, '/')+1:]
		if w.Runs[len(w.Runs)-1].Cleanup {
			if name == "controller(desired)" {
				return // its own function tells
			}
			name = "hook(cleanup)"
		}
		seen.value(t, name, "ctx", ctx)
	})
	ctxStory(t, w)
	seen.controllers(t, w)
	for _, c := range docs.Callbacks() {
		if c.Ctx() {
			seen.compare(t, &c)
		}
	}
	for _, f := range docs.CtxFields() {
		if !slices.ContainsFunc(f.In, func(name string) bool { return seen.fields[name][f.Path] != "" }) {
			t.Errorf("%s is nowhere there", f.Path)
		}
	}
}

// ctxStory has every hook of the tree run, for each of the reasons that it may have.
func ctxStory(t *testing.T, w *World) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	settled := func(err error) {
		t.Helper()
		must(err)
		must(w.Settle(t.Context()))
	}
	space := func(name, team string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]any{"team": team}}}
	}
	service := func(a string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "s", "namespace": "default",
			"labels": map[string]any{"app": "s"}, "annotations": map[string]any{"a": a}},
			"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}
	}
	labelled := node("b")
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"role": "x"}
	must(w.Apply(node("a")))
	must(w.Apply(space("one", "a")))
	must(w.Start(t.Context()))
	for _, obj := range []map[string]any{node("b"), labelled, space("two", "a"), space("two", "b"), service("1"), service("2")} {
		settled(w.Apply(obj))
	}
	settled(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Node", Name: "b"}))
	settled(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Namespace", Name: "two"}))
	must(w.Advance(t.Context(), 2*time.Hour))
	for name, r := range map[string]*builtins.Request{
		"k8s.validate": (&builtins.Review{Operation: "UPDATE", Object: service("3"), OldObject: service("2"), Options: map[string]any{"kind": "UpdateOptions"}}).Request("validate"),
		"k8s.mutate":   (&builtins.Review{Operation: "UPDATE", Object: service("3"), OldObject: service("2"), Options: map[string]any{"kind": "UpdateOptions"}}).Request("mutate"),
		"http.receive": (&builtins.Received{Method: "POST", Path: "/x", Body: "{}"}).Request("receive"),
	} {
		_, err := w.Ask(t.Context(), w.Generation().Hook("web/"+name), r)
		must(err)
	}
	settled(w.Delete(effect.Ref{APIVersion: "v1", Kind: "Service", Namespace: "default", Name: "s"}))
	settled(w.Configure(map[string]string{"webEnabled": "false"}))
	must(w.Advance(t.Context(), 10*time.Minute))
}

// ctxSeen is what was there, by the names of callbacks.
type ctxSeen struct {
	fields map[string]map[string]string // types of fields, by path
	events map[string]map[string]bool   // types of events
}

// value takes in the fields of a value, and of those that it holds.
func (s *ctxSeen) value(t *testing.T, name, path string, v starlark.Value) {
	if s.fields[name] == nil {
		s.fields[name], s.events[name] = map[string]string{}, map[string]bool{}
	}
	if list, is := v.(*starlark.List); is && (path == "ctx.events" || path == "ctx.children") {
		for e := range starlark.Elements(list) {
			s.value(t, name, path+"[]", e)
		}
	}
	o, is := v.(starlark.HasAttrs)
	if !is || path != "ctx" && !slices.Contains([]string{"struct", "request", "reads", "read"}, v.Type()) {
		return
	}
	for _, attr := range o.AttrNames() {
		x, err := o.Attr(attr)
		if err != nil {
			t.Fatal(err)
		}
		at := path + "." + attr
		if path == "ctx.reads" {
			at = path + ".NAME"
		}
		if x == starlark.None {
			continue
		}
		if x.Type() != "read" {
			s.fields[name][at] = x.Type()
		}
		if at == "ctx.events[].type" {
			text, _ := starlark.AsString(x)
			s.events[name][text] = true
		}
		s.value(t, name, at, x)
	}
}

// controllers takes in what the other functions of the controller have told: as a run shows the ctx of desired alone.
func (s *ctxSeen) controllers(t *testing.T, w *World) {
	desired := s.fields["controller(desired)"]
	top := func(fields map[string]string, under string) (names []string) {
		for path := range fields {
			if name, is := strings.CutPrefix(path, under+"."); is && !strings.Contains(name, ".") && !strings.Contains(name, "[") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	for _, run := range w.Runs {
		for _, line := range run.Logs {
			for _, f := range line.Fields {
				under := map[string]string{"has": "ctx", "reads": "ctx.reads.NAME", "children": "ctx.children[]"}[f.Key]
				list, _ := f.Value.([]any)
				if f.Key == "children" && len(list) > 0 {
					list, _ = list[0].([]any)
				}
				if under == "" || len(list) == 0 {
					continue
				}
				var names []string
				for _, name := range list {
					names = append(names, name.(string))
				}
				if want := top(desired, under); !slices.Equal(names, want) {
					t.Errorf("%s: %s has %v, that of desired has %v", line.Text, under, names, want)
				}
			}
			s.fields[line.Text], s.events[line.Text] = desired, map[string]bool{}
		}
	}
}

// compare holds the table to what was seen in one kind of function.
func (s *ctxSeen) compare(t *testing.T, c *docs.Callback) {
	got := maps.Clone(s.fields[c.Name])
	if len(got) == 0 {
		t.Errorf("%s: it was not called", c.Name)
		return
	}
	for _, f := range docs.CtxFieldsOf(c.Name) {
		is := got[f.Path]
		delete(got, f.Path)
		switch {
		case is == "" && !f.Sometimes:
			t.Errorf("%s: the table has %s, ctx has not", c.Name, f.Path)
		case is != "" && !typeIs(f.Type, is):
			t.Errorf("%s: %s is a %s, the table says %s", c.Name, f.Path, is, f.Type)
		}
	}
	for path := range got {
		t.Errorf("%s: ctx has %s, the table has not", c.Name, path)
	}
	for event := range s.events[c.Name] {
		if !slices.Contains(c.Events, event) {
			t.Errorf("%s: an event is %q, the table has %q", c.Name, event, c.Events)
		}
	}
	for _, event := range c.Events {
		waited := c.Name == "hook(cleanup)" && event != "deleted" // it comes where it had waited since before
		if !s.events[c.Name][event] && event != "requeue" && !waited {
			t.Errorf("%s: the table has an event %q, there is none in %v", c.Name, event, s.events[c.Name])
		}
	}
}

// typeIs says whether the words of the table mean a type of Starlark.
func typeIs(words, is string) bool {
	first, _, _ := strings.Cut(words, " ")
	switch is {
	case "snapshots", "synced", "object":
		return first == "dict" || first == "any" || first == "object" && is == "object"
	case "time.time":
		return first == "time"
	case "struct":
		return first == "struct" || first == "request"
	case "module":
		return first == "namespace"
	case "builtin_function_or_method":
		return first == "function"
	}
	return first == is || first == "any"
}
