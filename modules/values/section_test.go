package values

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

func mustSchema(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := ParseSchema("openapi/values.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sample(t testing.TB) Section {
	return Section{
		Name: "web", Key: "web",
		Static: []Layer{
			{Name: "chart values.yaml", File: "web/values.yaml", Data: object{
				"replicas": int64(1), "image": object{"name": "nginx", "tag": "1"}, "chartOnly": true, "gone": "x"}},
			{Name: "tree values.yaml", File: "values.yaml", Data: object{"image": object{"tag": "2"}, "gone": nil}},
		},
		ConfigSchema: mustSchema(t, `
properties:
  replicas: {type: integer, minimum: 1, default: 9}
  host: {type: string, default: example.com}
  image: {type: object, properties: {name: {type: string}, tag: {type: string}, pull: {type: string, default: Always}}}`),
		Schema: mustSchema(t, `
properties:
  replicas: {type: integer, minimum: 1, maximum: 10}
  host: {type: string}
  image: {type: object, properties: {name: {type: string}, tag: {type: string}, pull: {type: string}}}
  token: {type: string, maxLength: 3}
  internal:
    type: object
    properties:
      nodes: {type: array, items: {type: string}}
      mode: {type: string, default: auto}`),
		Config: object{"image": object{"tag": "3"}},
		Hooks: []HookLayer{
			{"b", ops(set("internal.nodes", []any{"n1"}), deflt("host", "from-hook"), deflt("image", object{"name": "default", "tag": "default"}))},
			{"a", ops(set("replicas", int64(4)), remove("chartOnly"))},
		},
	}
}

func TestCompose(t *testing.T) {
	s := sample(t)
	before := fmt.Sprint(s.Static, s.Config, s.Hooks)
	want := object{
		"replicas": int64(4),
		"host":     "from-hook",
		"image":    object{"name": "default", "tag": "3", "pull": "Always"},
		"internal": object{"nodes": []any{"n1"}, "mode": "auto"},
	}
	if diff := cmp.Diff(want, s.Compose()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	s.Hooks[0], s.Hooks[1] = s.Hooks[1], s.Hooks[0]
	if diff := cmp.Diff(want, s.Compose()); diff != "" {
		t.Errorf("with hooks in another order (-want +got):\n%s", diff)
	}
	s.Hooks[0], s.Hooks[1] = s.Hooks[1], s.Hooks[0]

	c := NewComposer(s)
	got, err := c.For("a", ops(set("internal.nodes2", "x")))
	if err != nil {
		t.Fatal(err)
	}
	want = object{
		"replicas": int64(1), "chartOnly": true, "host": "from-hook",
		"image":    object{"name": "default", "tag": "3", "pull": "Always"},
		"internal": object{"nodes": []any{"n1"}, "nodes2": "x", "mode": "auto"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("for a run of a (-want +got):\n%s", diff)
	}
	got, err = s.ComposeFor("b", nil)
	if err != nil {
		t.Fatal(err)
	}
	want = object{"replicas": int64(4), "host": "example.com", "image": object{"name": "nginx", "tag": "3", "pull": "Always"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("for a run of b (-want +got):\n%s", diff)
	}
	// With gives the same as the changed section.
	if diff := cmp.Diff(got, c.WithHook("b", nil).Compose()); diff != "" {
		t.Errorf("without b (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.Compose(), c.WithHook("b", nil).WithHook("b", s.Hooks[0].Ops).WithConfig(s.Config).Compose()); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
	if tag := c.WithConfig(nil).Compose()["image"].(object)["tag"]; tag != "default" {
		t.Errorf("without config the tag is %v", tag)
	}
	if names := c.WithHook("aa", ops(set("x", 1))).Section().Hooks; names[0].Hook != "a" || names[1].Hook != "aa" || names[2].Hook != "b" {
		t.Errorf("hooks are not sorted: %v", names)
	}
	if after := fmt.Sprint(s.Static, s.Config, s.Hooks); after != before {
		t.Errorf("composing changed its sources:\n%s\n%s", before, after)
	}
}

func TestForRefusesToReachIntoLists(t *testing.T) {
	c := NewComposer(Section{Static: []Layer{{Data: object{"hosts": []any{object{"name": "a"}}}}}})
	tests := []struct {
		own  []effect.ValueOp
		want string
	}{
		{ops(set("hosts.0.name", "b")), "f:1: values path hosts.0.name: hosts is a list, and a path does not reach into one; set the whole list"},
		{ops(set("new", []any{}), remove("new.x")), "f:1: values path new.x: new is a list, and a path does not reach into one; remove the whole list"},
		{ops(set("a.b", object{"c": []any{}}), deflt("a.b.c.d", 1)), ""},
		{ops(deflt("hosts.x", 1)), "f:1: values path hosts.x: hosts is a list, and a path does not reach into one; default the whole list"},
		{ops(remove("hosts"), set("hosts.x", "y")), ""},
		{ops(set("hosts", []any{"new"}), set("other.deep.path", 1)), ""},
	}
	for _, tt := range tests {
		for i := range tt.own {
			tt.own[i].Pos = "f:1"
		}
		_, err := c.For("h", tt.own)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v:\ngot  %s\nwant %s", tt.own, got, tt.want)
		}
	}
}

func TestComposerIsConcurrent(t *testing.T) {
	c := NewComposer(sample(t))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c.Compose()
			if _, err := c.For("a", ops(set("replicas", 1))); err != nil {
				t.Error(err)
			}
			c.CheckHook("a", ops(set("replicas", 1)))
		})
	}
	wg.Wait()
}

func TestViews(t *testing.T) {
	global := object{"domain": "x", "nested": object{"a": int64(1)}}
	got := ModuleView(object{"replicas": int64(1), "global": object{"registry": "chart", "nested": object{"b": int64(2)}}}, global)
	want := object{"replicas": int64(1), "global": object{"domain": "x", "registry": "chart", "nested": object{"a": int64(1), "b": int64(2)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(object{"global": object{}}, ModuleView(nil, nil)); diff != "" {
		t.Errorf("empty module (-want +got):\n%s", diff)
	}
	want = object{"global": global, "fooEnabled": false, "barEnabled": true}
	if diff := cmp.Diff(want, GlobalView(global, map[string]bool{"fooEnabled": true, "barEnabled": true}, map[string]bool{"fooEnabled": false})); diff != "" {
		t.Errorf("global (-want +got):\n%s", diff)
	}
}

func TestSplitGlobal(t *testing.T) {
	tests := []struct {
		name     string
		in       []effect.ValueOp
		global   []effect.ValueOp
		switches map[string]bool
		err      string
	}{
		{"nothing", nil, nil, map[string]bool{}, ""},
		{"both", ops(set("global.a.b", 1), set("fooEnabled", true), set("barEnabled", false)), ops(set("a.b", 1)),
			map[string]bool{"fooEnabled": true, "barEnabled": false}, ""},
		{"a merge at the root", ops(merge("", object{"global": object{"a": 1}, "fooEnabled": true, "barEnabled": nil})),
			[]effect.ValueOp{{Op: effect.OpMerge, Path: []string{}, Value: object{"a": 1}}}, map[string]bool{"fooEnabled": true}, ""},
		{"set and taken back", ops(set("fooEnabled", true), remove("fooEnabled")), nil, map[string]bool{}, ""},
		{"a default is weaker", ops(set("fooEnabled", true), deflt("fooEnabled", false)), nil, map[string]bool{"fooEnabled": true}, ""},
		{"a module's values", ops(set("web.replicas", 1)), nil, nil, `values path "web.replicas": global hooks write below global and switches such as fooEnabled`},
		{"below a switch", ops(set("fooEnabled.x", true)), nil, nil, `values path "fooEnabled.x": global hooks write below global and switches such as fooEnabled`},
		{"no boolean", ops(set("fooEnabled", "true")), nil, nil, `values path "fooEnabled": a switch is True or False`},
		{"everything", ops(set("", object{})), nil, nil, `values path "": the values as a whole cannot be replaced`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			global, switches, err := SplitGlobal(tt.in)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.err {
				t.Errorf("error %q, want %q", got, tt.err)
			}
			if diff := cmp.Diff(tt.global, global); diff != "" {
				t.Errorf("global (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.switches, switches); diff != "" {
				t.Errorf("switches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolveSwitch(t *testing.T) {
	on, off := true, false
	tests := []struct {
		def                 bool
		tree, hooks, config *bool
		want                Switch
	}{
		{false, nil, nil, nil, Switch{On: false, Explicit: false, Source: SourceModule}},
		{true, nil, nil, nil, Switch{On: true, Explicit: false, Source: SourceModule}},
		{true, &off, nil, nil, Switch{On: false, Explicit: true, Source: SourceTree}},
		{false, &off, &on, nil, Switch{On: true, Explicit: true, Source: SourceHook}},
		{false, &on, &on, &off, Switch{On: false, Explicit: true, Source: SourceConfig}},
	}
	for _, tt := range tests {
		if got := ResolveSwitch(tt.def, tt.tree, tt.hooks, tt.config); got != tt.want {
			t.Errorf("%+v: got %+v", tt, got)
		}
	}
}

func BenchmarkFor(b *testing.B) {
	s := sample(b)
	chart := object{}
	for i := range 30 {
		m := object{}
		for j := range 10 {
			m[fmt.Sprintf("k%d", j)] = object{"a": int64(i), "b": "x"}
		}
		chart[fmt.Sprintf("s%d", i)] = m
	}
	s.Static = append(s.Static, Layer{Data: chart})
	c := NewComposer(s)
	for b.Loop() {
		if _, err := c.For("a", ops(set("replicas", int64(4)), set("s1.k1.a", "y"))); err != nil {
			b.Fatal(err)
		}
	}
}
