package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"

	"go.starlark.net/starlark"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Controllers are tried on the objects in the examples/ of their module: the simulated API server
// says whether it would take them, and the children that desired wants for them. Conversions are tried on them, too.

// exampleManager writes the objects.
const exampleManager = "starling"

// example is one object of a file in examples/.
type example struct {
	File   string
	Object map[string]any
}

// examples tries all controllers and conversions.
func (c *checker) examples() {
	definitions := sync.OnceValue(func() digest { return keyOf(c.allDefinitions(), c.kinds.known, c.kinds.complete) })
	for _, m := range c.modules {
		if m.Err != nil || !slices.ContainsFunc(m.Hooks, func(h *generation.Hook) bool { return h.Decides() || conversionOf(h) != nil }) {
			continue
		}
		found := c.readExamples(m)
		if len(found) == 0 {
			continue
		}
		all := definitions()
		key := exampleKey{m, keyOf(all[:], found, c.view(m))}
		// Nothing else adds findings meanwhile.
		before := len(c.findings)
		known := c.cache.examples.of(key, func() ([]Finding, bool) {
			kinds := c.cache.builtins()
			lookups := c.finds(m, found, kinds)
			for _, e := range found {
				s := c.server(kinds)
				c.converted(m, e, s)
				c.example(m, e, s, lookups)
			}
			return slices.Clone(c.findings[before:]), c.ctx.Err() == nil
		})
		c.findings = append(c.findings[:before], known...)
	}
}

// readExamples are the objects in the examples/ of a module, by file.
func (c *checker) readExamples(m *generation.Module) (out []example) {
	// A folder that is not there is no example.
	_ = fs.WalkDir(c.tree.Files, m.Tree.Dir+"/examples", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(file)) {
			return err
		}
		data, err := fs.ReadFile(c.tree.Files, file)
		if err != nil {
			return err
		}
		found, err := readObjects(data)
		if err != nil {
			c.addAt(Error, "examples", m.Name, file, err.Error(), "")
		}
		for _, obj := range found {
			out = append(out, example{file, obj})
		}
		return nil
	})
	return out
}

// readObjects reads the objects of a text of YAML.
func readObjects(data []byte) (out []map[string]any, err error) {
	docs, err := bounded.YAMLDocuments(data)
	if err != nil {
		return nil, err
	}
	for i, doc := range docs {
		text, err := bounded.YAMLToJSON(doc)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if string(text) == "null" { // comments only
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(text); err != nil || obj.GetName() == "" {
			return nil, fmt.Errorf("document %d: not an object of Kubernetes with apiVersion, kind and metadata.name", i+1)
		}
		out = append(out, obj.Object)
	}
	return out, nil
}

// server is an API server that serves the kinds of the tree.
func (c *checker) server(kinds *store.Builtins) *store.Store {
	s := store.New(store.Options{Builtins: kinds, MakeNamespaces: true})
	for _, m := range c.modules {
		for _, f := range slices.Concat(m.Tree.CRDs, c.subcharts[m.Name]) {
			c.serve(s, m, f)
		}
	}
	return s
}

// serve has the server serve the kinds of one file.
func (c *checker) serve(s *store.Store, m *generation.Module, f tree.File) {
	found, err := readObjects(f.Data)
	if err != nil {
		return // definitions() says so
	}
	for _, obj := range found {
		delete(obj, "status")
		if _, err := create(s, obj, false); err != nil {
			c.addAt(Error, "load", m.Name, f.Path, err.Error(), "")
		}
	}
}

// create makes an object as somebody does who wants to be warned of mistakes. One that is there already,
// as a namespace may be, stays as it is.
func create(s *store.Store, obj map[string]any, applied bool) (store.Result, error) {
	ref := effect.RefOf(obj)
	k, known := s.KindOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !known {
		return store.Result{Object: obj}, nil
	}
	t := store.Target{GVR: k.GVR()}
	if k.Namespaced {
		t.Namespace = cmp.Or(ref.Namespace, "default")
	}
	made, err := s.Create(t, obj, store.WriteOptions{Manager: exampleManager})
	if apierrors.IsAlreadyExists(err) {
		return store.Result{Object: obj}, nil
	}
	if err != nil || !applied || len(made.Warnings) > 0 {
		return made, err
	}
	text, err := json.Marshal(obj)
	if err == nil { // an apply is refused for nulls that a creation leaves out
		t.Name = made.Object["metadata"].(map[string]any)["name"].(string)
		_, err = s.Patch(t, types.ApplyPatchType, text, store.WriteOptions{Manager: exampleManager, Force: true, DryRun: true})
	}
	return made, err
}

// withStatus gives an object that was made the status that it is given with: what its controller wants may hang on it,
// and a request that makes an object takes none.
func withStatus(s *store.Store, obj map[string]any, made store.Result) (store.Result, error) {
	ref := effect.RefOf(made.Object)
	k, known := s.KindOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if obj["status"] == nil || !known || !k.Status {
		return made, nil
	}
	with := maps.Clone(made.Object)
	with["status"] = obj["status"]
	t := store.Target{GVR: k.GVR(), Namespace: ref.Namespace, Name: ref.Name, Subresource: "status"}
	told, err := s.Update(t, with, store.WriteOptions{Manager: exampleManager})
	told.Warnings = slices.Concat(made.Warnings, told.Warnings)
	return told, err
}

// example tries the controllers of one kind on one object.
func (c *checker) example(m *generation.Module, e example, s *store.Store, lookups map[*generation.Hook]builtins.LookupsOptions) {
	ref := effect.RefOf(e.Object)
	c.kind(m.Name, e.File, "examples/: ", ref.APIVersion, ref.Kind)
	made, err := create(s, e.Object, false)
	if err == nil {
		made, err = withStatus(s, e.Object, made)
	}
	if err != nil {
		c.addAt(Error, "examples", m.Name, e.File, fmt.Sprintf("%s: the API server refuses it: %s", ref, err), "")
		return
	}
	for _, warning := range made.Warnings {
		u, _ := droppedField(s, e.Object, warning)
		c.addAt(Warning, "examples", m.Name, e.File, fmt.Sprintf("%s: %s", ref, warning), u.hint())
	}
	for _, h := range m.Hooks {
		if !h.Decides() || !ref.IsA(h.Bindings[0].Watch.APIVersion, h.Bindings[0].Watch.Kind) {
			continue
		}
		c.desired(m, h, e, s, made.Object, builtins.NewLookups(lookups[h]))
	}
}

// desired has a controller say which children an object gets, and looks at them.
func (c *checker) desired(m *generation.Module, h *generation.Hook, e example, s *store.Store, parent map[string]any, lookups *builtins.Lookups) {
	ref := effect.RefOf(parent)
	key := effect.Key(ref.Namespace, ref.Name)
	run := &builtins.Run{
		Module: m.Name, Hook: h.HookDecl.ID, Global: m.Global, Key: key,
		Namespace: cmp.Or(ref.Namespace, m.Decl.Namespace, "starling-system"),
		Instance:  effect.Instance{Namespace: "starling-system", Name: "starling"},
		Scope: func(apiVersion, kind string) (bool, error) {
			k, known := s.KindOf(schema.FromAPIVersionAndKind(apiVersion, kind))
			return !known || k.Namespaced, nil
		},
		Compose: func([]effect.ValueOp) (map[string]any, error) { return c.view(m), nil },
		// Without Owns all kinds are taken: each one that is missing is told.
	}
	var out builtins.Decided
	look := func(*builtins.Desired, []reconcile.Child) ([]reconcile.Child, error) { return nil, nil }
	q := builtins.Question{Key: key, Parent: object.New(parent), Look: look, Lookups: lookups}
	options := script.CallOptions{
		Name:    h.ID,
		Context: &builtins.Context{Phase: spec.InDesired, Run: run, Log: builtins.Silent{}},
		Limits:  script.Limits{Wall: h.Timeout},
		Of:      h.Fn, // an answer that is wrong has its place
	}
	_, _, err := c.gen.Host.Call(c.ctx, q.Decide(h.Fn, &out), nil, options)
	switch {
	case err != nil:
		c.addError("examples", m.Name, err)
	case out.Stalled != "":
		c.addAt(Note, "examples", m.Name, e.File, fmt.Sprintf("%s: the controller is stalled: %s", ref, out.Stalled), "")
	case out.Hold:
		why, hint := "answers None", ""
		if out.Waiting != "" {
			why = "waits for " + out.Waiting
		}
		if reads(h) {
			hint = "put what it waits for into examples/, too: reads= finds it there"
		}
		c.addAt(Note, "examples", m.Name, e.File, fmt.Sprintf("%s: the controller %s, so no child is checked", ref, why), hint)
	}
	missing := map[string]bool{}
	for i := range out.Parts {
		c.part(m, h, s, &out.Parts[i], missing)
	}
	if tell := h.Controller.Status; tell != nil && err == nil {
		var told map[string]any
		options.Of = tell
		if _, _, err := c.gen.Host.Call(c.ctx, q.Status(tell, &told), nil, options); err != nil {
			c.addError("examples", m.Name, err)
			return
		}
		c.status(m, e, s, tell, parent, told)
	}
}

// status looks at the fields that tell gives the status of an object.
func (c *checker) status(m *generation.Module, e example, s *store.Store, tell starlark.Callable, parent, fields map[string]any) {
	ref := effect.RefOf(parent)
	k, known := s.KindOf(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !known {
		return
	}
	obj := maps.Clone(parent)
	obj["status"] = fields
	t := store.Target{GVR: k.GVR(), Namespace: ref.Namespace, Name: ref.Name, Subresource: "status"}
	written, err := s.Update(t, obj, store.WriteOptions{Manager: "starling", DryRun: true})
	if err != nil {
		c.addAt(Error, "examples", m.Name, e.File, fmt.Sprintf("%s: the API server refuses its status: %s", ref, err), "")
		return
	}
	for _, warning := range written.Warnings {
		u, unknown := droppedField(s, obj, warning)
		if !unknown {
			c.addAt(Warning, "examples", m.Name, e.File, fmt.Sprintf("%s: its status: %s", ref, warning), "")
			continue
		}
		at := e.File
		if fn, is := tell.(*starlark.Function); is {
			at = fn.Position().String()
		}
		c.addAt(Error, "examples", m.Name, at, fmt.Sprintf("%s has no field %s: the API server refuses it", ref.Kind, u.path), u.hint())
	}
}

// part looks at one child that is wanted. missing are the kinds that owns lacks, as far as they
// were told.
func (c *checker) part(m *generation.Module, h *generation.Hook, s *store.Store, p *builtins.Part, missing map[string]bool) {
	kind := reconcile.Kind{APIVersion: p.ID.APIVersion, Kind: p.ID.Kind}
	owns, declared := fmt.Sprintf("owns(%q, %q)", kind.APIVersion, kind.Kind), h.Controller.Owns
	if p.ID.Fields {
		owns, declared = fmt.Sprintf("owns(%q, %q, fields = True)", kind.APIVersion, kind.Kind), h.Controller.Fields
	}
	if !slices.Contains(declared, kind) && !missing[owns] {
		missing[owns] = true
		c.addAt(Error, "examples", m.Name, p.Pos, fmt.Sprintf("part %q is of a kind that the controller does not own", p.Name), "add "+owns+" to owns")
	}
	if p.ID.Fields {
		return // of an object that nobody has here
	}
	want, _ := p.Made(nil, nil, nil) // the system's own source of random bytes does not fail
	made, err := create(s, want, true)
	if err != nil {
		why, hint := err.Error(), ""
		if at, wanted := wrongType(want, err); at != "" {
			why, hint = at+" must be "+inWords([]string{wanted}), typeHint(wanted, "str(x)")
		}
		c.addAt(Error, "examples", m.Name, p.Pos, fmt.Sprintf("part %q: the API server refuses it: %s", p.Name, why), hint)
		return
	}
	for _, warning := range made.Warnings {
		u, unknown := droppedField(s, want, warning)
		if !unknown {
			c.addAt(Warning, "examples", m.Name, p.Pos, fmt.Sprintf("part %q: %s", p.Name, warning), "")
			continue
		}
		c.addAt(Error, "examples", m.Name, p.Pos, fmt.Sprintf("part %q: %s has no field %s: the API server refuses it", p.Name, p.ID.Kind, u.path), u.hint())
	}
	for _, at := range cluster.OtherForms(want, made.Object, exampleManager) {
		c.addAt(Warning, "examples", m.Name, p.Pos, fmt.Sprintf("part %q: the API server keeps %s, which costs a request after each start of Starling", p.Name, at), "write it as the API server keeps it")
	}
	if p.ID.Kind == "Secret" && p.ID.APIVersion == "v1" {
		return
	}
	for _, at := range plainSecrets("", want) {
		c.addAt(Warning, "examples", m.Name, p.Pos, fmt.Sprintf("part %q: %s looks like a secret, and anybody who may read the %s can read it", p.Name, at, p.ID.Kind), "put it into a Secret, and refer to that")
	}
}
