package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/definition"
	"github.com/starling-operator/starling/runtime/message"
)

// The API server takes a definition that objects which are there do not pass: they lose fields, or can be written no
// more. So they are looked at before (docs/decisions/0098).

// crdPage is how many objects of a kind are in memory at once.
const crdPage = 25

// crdUpdate is one definition as it is, and as it would be.
type crdUpdate struct {
	m             *Manager
	before, after *apiextensionsv1.CustomResourceDefinition
	// converted: objects become those of another version by a webhook.
	converted bool
	// name is for people.
	name string
}

// keepsObjects refuses an update of a definition by which objects that are there cannot be reached any more, lose
// fields, or are not what the schema takes.
func (m *Manager) keepsObjects(ctx context.Context, c *crd) error {
	if c.of.Force {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, crdTimeout, errTimeout(crdTimeout))
	defer cancel()
	name := fmt.Sprintf("%s: CustomResourceDefinition %s", c.File, c.Object.GetName())
	live, err := m.dynamic.Resource(crdResource()).Get(ctx, c.Object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: what is there cannot be read: %w", name, tidy(err))
	}
	u := crdUpdate{m: m, name: name, before: &apiextensionsv1.CustomResourceDefinition{}, after: &apiextensionsv1.CustomResourceDefinition{}}
	read := runtime.DefaultUnstructuredConverter.FromUnstructured
	if read(live.Object, u.before) != nil || read(c.Object.Object, u.after) != nil {
		return nil // the API server says why
	}
	conversion := u.after.Spec.Conversion
	if conversion == nil {
		conversion = u.before.Spec.Conversion
	}
	u.converted = conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter || m.o.Converts != nil && m.o.Converts(u.before.Name)
	if what, do := u.outOfReach(); what != "" {
		found, err := u.look(ctx, u.served(""), func(map[string]any) string { return what })
		switch {
		case err != nil:
			return fmt.Errorf("%s %s, and nobody can see whether objects are left: %w: %s", u.name, what, err, do)
		case found.all > 0:
			return fmt.Errorf("%s %s, and objects are left (%d, the first is %s): %s", u.name, what, found.all, found.first, do)
		}
		return nil
	}
	for _, s := range u.narrowed() {
		const do = `change them first, or force it with module(crds = "force")`
		found, err := u.look(ctx, s.from, s.problem)
		switch {
		case err != nil:
			return fmt.Errorf("%s may drop or refuse %s in version %s, and nobody can see what its objects have there: %w: %s", u.name, s.at, s.to, err, do)
		case found.wrong > 0:
			return fmt.Errorf("%s %s in version %s, which concerns %d of %d objects, the first is %s: %s", u.name, found.what, s.to, found.wrong, found.all, found.first, do)
		}
	}
	return nil
}

// keepTheirObjects is keepsObjects for the definitions in templates.
func (m *Manager) keepTheirObjects(ctx context.Context, t Target, r rendering) error {
	if !r.definesKinds() {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(r.files)) {
		docs, _ := bounded.YAMLDocuments([]byte(r.files[path])) // Helm says what is wrong with others
		for _, doc := range docs {
			data, _ := yaml.YAMLToJSON(doc)
			d, err := chart.DefinitionOf(data)
			if err != nil {
				continue
			}
			d.File = path
			if err := m.keepsObjects(ctx, &crd{d, crdOwner{CRDOptions: CRDOptions{Force: t.ForceCRDs}}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// outOfReach says what of an update the API server refuses for the sake of stored objects, and the way to it.
func (u *crdUpdate) outOfReach() (what, do string) {
	before, after := u.before.Spec, u.after.Spec
	for _, f := range []struct{ name, old, next string }{
		{"scope", string(before.Scope), string(after.Scope)}, {"group", before.Group, after.Group},
		{"names.kind", before.Names.Kind, after.Names.Kind}, {"names.plural", before.Names.Plural, after.Names.Plural},
	} {
		if f.old != f.next {
			return fmt.Sprintf("changes spec.%s from %s to %s", f.name, f.old, f.next),
				"leave it as it is and make another kind, or save the objects and delete the definition with them"
		}
	}
	for _, stored := range u.before.Status.StoredVersions {
		if !slices.ContainsFunc(after.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
			return fmt.Sprintf("drops version %s, in which status.storedVersions says that objects are stored", stored),
				"keep it with served: false until all objects have been written anew and status.storedVersions does not name it"
		}
	}
	return "", ""
}

// narrowing is a version whose objects may not pass.
type narrowing struct {
	// from is the version in which the objects are read, to the one that they have to pass, at where that may fail.
	from, to, at  string
	before, after *definition.Version
	apiVersion    string // of to
}

// narrowed are the versions that may take less than now. A version in which objects are stored from now on has to take
// what the one of before took, as long as nothing converts them.
func (u *crdUpdate) narrowed() (out []narrowing) {
	for _, after := range u.after.Spec.Versions {
		for _, before := range u.before.Spec.Versions {
			moves := before.Storage && after.Storage && !u.converted
			if before.Name != after.Name && !moves || before.Schema == nil || after.Schema == nil {
				continue
			}
			s := narrowing{from: before.Name, to: after.Name, apiVersion: u.after.Spec.Group + "/" + after.Name}
			if s.at = definition.Narrower(before.Schema.OpenAPIV3Schema, after.Schema.OpenAPIV3Schema); s.at == "" && u.before.Spec.PreserveUnknownFields && !u.after.Spec.PreserveUnknownFields {
				s.at = "the object"
			}
			if s.at == "" {
				continue
			}
			var err error
			if s.before, err = definition.New(u.before, &before); err != nil {
				continue
			}
			if s.after, err = definition.New(u.after, &after); err != nil {
				continue // the API server says why
			}
			if !before.Served && !u.converted {
				s.from = u.served(before.Name)
			}
			out = append(out, s)
		}
	}
	return out
}

// served is a version in which objects can be read: this one, if it is served.
func (u *crdUpdate) served(version string) string {
	first := version
	for _, v := range u.before.Spec.Versions {
		switch {
		case v.Served && v.Name == version:
			return version
		case v.Served && first == version:
			first = v.Name
		}
	}
	return first
}

// problem is why an object does not pass, "" if it does, or did not before.
func (n *narrowing) problem(obj map[string]any) string {
	obj["apiVersion"] = n.apiVersion
	before := runtime.DeepCopyJSON(obj)
	dropped, err := n.after.Decode(obj, false)
	switch {
	case err != nil:
		return "refuses objects (" + chart.Tidy(err.Error()) + ")"
	case len(dropped) > 0:
		return "drops " + strings.TrimSuffix(strings.TrimPrefix(dropped[0], `unknown field "`), `"`)
	}
	wrong := n.after.Validate(obj, nil, false)
	if len(wrong) == 0 {
		return ""
	}
	already := n.before.Validate(before, nil, false)
	for _, e := range wrong {
		if !slices.ContainsFunc(already, func(o *field.Error) bool { return o.Field == e.Field && o.Type == e.Type }) {
			why := message.Cut(message.Line(strings.TrimPrefix(e.Detail, e.Field+" in body ")), 300)
			return fmt.Sprintf("refuses %s (%s)", strings.TrimPrefix(e.Field, "<nil>."), cmp.Or(why, strings.ToLower(e.Type.String())))
		}
	}
	return ""
}

// looked is what was found of the objects of a definition.
type looked struct {
	all, wrong int
	// first is the first one that is wrong, and what is.
	first, what string
}

// look goes through all objects of the definition, a page at a time. An error is for people.
func (u *crdUpdate) look(ctx context.Context, version string, problem func(map[string]any) string) (out looked, err error) {
	of := u.before.Spec
	list := u.m.dynamic.Resource(schema.GroupVersionResource{Group: of.Group, Version: version, Resource: of.Names.Plural})
	options := metav1.ListOptions{Limit: crdPage}
	for {
		page, err := list.List(ctx, options)
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		if err != nil {
			return out, tidy(err)
		}
		for _, o := range page.Items {
			out.all++
			what := problem(o.Object)
			if what == "" {
				continue
			}
			if out.wrong++; out.wrong == 1 {
				out.first, out.what = strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), what
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
