package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	texts "github.com/starling-operator/starling/runtime/object"
)

// renderTime bounds the rendering of one chart.
const renderTime = 20 * time.Second

// helmStorage is what Helm does with the Secrets that hold its revisions.
var helmStorage = [...]string{"get", "list", "create", "update", "patch", "delete"}

// charted is what is known of the chart of one module.
type charted struct {
	module    *generation.Module
	namespace string
	objects   []object
	defined   []resource // by templates
	// written are the objects that templates may render; what the text does not tell is known by its place.
	written map[chart.Written]bool
	err     error
}

// object is the part of a manifest that matters here.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Rules       []rbacv1.PolicyRule `json:"rules"`
	Aggregation any                 `json:"aggregationRule"`
	RoleRef     rbacv1.RoleRef      `json:"roleRef"`
}

type kindName struct{ apiVersion, kind string }

// charts needs what releases do: Helm's storage, namespaces, and the objects that the
// charts render.
func (b *builder) charts() error {
	var all []*charted
	sections, err := b.sections()
	if err != nil {
		return err
	}
	found, caps, err := b.found()
	if err != nil {
		return err
	}
	for _, m := range b.gen.All() {
		if m.Tree.Chart == nil {
			continue
		}
		c := &charted{module: m, namespace: b.namespace(m), written: map[chart.Written]bool{}}
		for _, f := range m.Tree.Chart.Files {
			if subchartCRD.MatchString(f.Path) { // other values may switch the subchart on
				b.definition(m, f.Data, false)
			}
		}
		all = append(all, c)
	}
	// The kinds that charts define show only once they are rendered: charts that ask for kinds are, with these.
	for _, again := range []bool{false, true} {
		caps := helm.WithKinds(caps, b.kinds.served...)
		for _, c := range all {
			if again && !chart.AsksCapabilities(c.module.Tree.Chart.Files) {
				continue
			}
			views := []map[string]any{values.ModuleView(sections[c.module.Name].Compose(), sections["global"].Compose())}
			if view := found[c.module.Name]; view != nil {
				views = append(views, view)
			}
			b.render(c, caps, views...)
		}
	}
	for _, c := range all {
		for _, o := range c.objects {
			if o.Kind == "Namespace" && o.APIVersion == "v1" { // its Role would need it first
				b.make(o.Metadata.Name)
			}
		}
	}
	for _, c := range all {
		b.release(c)
		b.lookups(c)
		for _, o := range c.objects {
			b.object(c, o, all)
		}
		b.unrendered(c)
	}
	return nil
}

// sections are the values of all modules, as they are before any hook has set some.
func (b *builder) sections() (map[string]*values.Composer, error) {
	known, t := b.gen.Known(), b.gen.Tree
	config, _ := values.ParseTree(t.Values, t.ValuesFile, known) // starling check says what is wrong
	user, problems := values.ParseConfig(b.o.Config, known)
	out := map[string]*values.Composer{"global": values.NewComposer(values.Section{Name: "global", Key: values.GlobalKey, Static: static(t.ValuesFile, config.Global), Config: user.Global})}
	for _, m := range b.gen.All() {
		ofTree, ofUser := config.Sections[m.Name], user.Sections[m.Name]
		if m.Global {
			ofTree, ofUser = config.Global, user.Global
		}
		s := values.Section{Name: m.Name, Key: m.Key, Static: append(m.FileValues(), static(t.ValuesFile, ofTree)...), Config: ofUser}
		if cs, all, err := m.Schemas(); err == nil {
			s.ConfigSchema, s.Schema = cs, all
		}
		out[m.Name] = values.NewComposer(s)
		if drift := user.Policies[m.Name].Drift; drift != "" && drift != builtins.DriftIgnore { // which may be taken back
			m.Decl.Drift = drift
		}
		if ofUser != nil {
			problems = append(problems, out[m.Name].CheckConfig(ofUser, nil)...)
		}
	}
	for _, p := range problems {
		if p.Module != "" { // else it is a key of a module that is not looked at, or gone
			return nil, fmt.Errorf("the config: %s", p)
		}
	}
	return out, nil
}

func static(file string, data map[string]any) []values.Layer {
	if len(data) == 0 {
		return nil
	}
	return []values.Layer{{Name: file, File: file, Data: data}}
}

// render fills in what the chart renders to, with the values of the tree and with those
// that hooks find. One that renders with either is known.
func (b *builder) render(c *charted, caps *helm.Capabilities, views ...map[string]any) {
	var failed []error
	for _, view := range views {
		if err := b.renderWith(c, caps, view); err != nil {
			failed = append(failed, err)
		}
	}
	if c.err = nil; len(failed) == len(views) {
		c.err = failed[len(failed)-1]
	}
}

func (b *builder) renderWith(c *charted, caps *helm.Capabilities, view map[string]any) error {
	ctx, cancel := context.WithTimeout(b.ctx, renderTime)
	defer cancel()
	m := c.module
	view, err := hook.ChartValues(ctx, b.gen.Host, m, view, nil, time.Unix(0, 0), builtins.Silent{})
	if err != nil {
		return err
	}
	target := chart.Input{
		Module: m.Name, Name: m.Decl.Release, Namespace: c.namespace, Chart: m.Tree.Chart, Values: view,
		Installs: m.Decl.Installs, Lookup: m.Decl.Lookup, Test: m.Decl.Test,
	}
	o := b.o.Renderer.Offline(ctx, target, caps, nil)
	for _, f := range o.CRDs { // those of packed subcharts too
		b.definition(m, f.Data, true)
	}
	if written, err := b.o.Renderer.Written(ctx, target, caps); err == nil {
		c.read(written)
	} else if o.Err == nil {
		return fmt.Errorf("its templates cannot be read: %w", err)
	}
	for _, missing := range o.Lookups {
		b.note("chart of %s: it looks up what its module.star does not allow: add to module(lookup = […]): %s", m.Name, missing.Line)
	}
	for _, missing := range o.Installs {
		b.note("chart of %s: %s holds what its module.star does not allow: add to module(installs = […]): %s", m.Name, missing.File, missing.Line)
	}
	if o.Err != nil {
		return o.Err
	}
	for _, file := range slices.Sorted(maps.Keys(o.Files)) {
		for _, doc := range texts.Documents(o.Files[file]) {
			if err := c.parse(doc, b.kinds); err != nil {
				return fmt.Errorf("%s: what it renders to is no object", file)
			}
		}
	}
	for _, r := range c.defined {
		b.defines("chart of "+m.Name, r)
	}
	return nil
}

// parse notes the objects of a document.
func (c *charted) parse(doc string, k *kinds) error {
	var whole map[string]any
	if err := yaml.Unmarshal([]byte(doc), &whole); err != nil {
		return err
	}
	list, err := texts.Objects(whole)
	if err != nil {
		return err
	}
	for _, one := range list {
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		var o object
		switch err := json.Unmarshal(text, &o); {
		case err != nil:
			return err
		case o.Kind == "" || o.APIVersion == "":
			return errors.New("no object")
		case o.Kind == "CustomResourceDefinition":
			c.defined = slices.AppendSeq(c.defined, maps.Values(k.addCRDs(text, true)))
		}
		c.objects = append(c.objects, o)
	}
	return nil
}

var subchartCRD = regexp.MustCompile(`^(?:charts/[^/]+/)+crds/.+\.(?:ya?ml|json)$`)

// read notes what templates may render. An object that cannot be told is known once the values of one view render it.
func (c *charted) read(list []chart.Written) {
	for _, w := range list {
		rendered := w.Rendered
		w.Rendered = false
		c.written[w] = c.written[w] || rendered
	}
}
