package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart acts with all rights of the operator. So it holds and reads only what its module
// names (docs/decisions/0016).

func (o object) ref(namespace string) effect.Ref {
	ref := effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	ref.Namespace = cmp.Or(ref.Namespace, namespace)
	return ref
}

// instance names the Starling, whose own objects no chart may touch.
func (m *Manager) instance() effect.Instance {
	return effect.Instance{Namespace: m.o.Namespace, Name: m.o.Name}
}

// limit refuses objects that the release may not hold.
func (m *Manager) limit(t Target, objects []object) error {
	for _, o := range objects {
		own := o.ref(t.Namespace)
		if o.token && own.Namespace == m.o.Namespace {
			return fmt.Errorf("the chart holds %s with the token of a ServiceAccount in Starling's namespace, which belongs to Starling itself; give the module a namespace", o)
		}
		if m.instance().Owns(own) || m.instance().LivesIn(effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name}) {
			return fmt.Errorf("the chart holds %s, which belongs to Starling itself", o)
		}
		if m.o.Others != nil && m.o.Others(own) {
			return fmt.Errorf("the chart holds %s, and another Starling takes its config from it", o)
		}
	}
	lines, wrong := missingInstalls(t, objects)
	if len(wrong) > 0 {
		return fmt.Errorf("the chart holds an object of kind %s, and there is none (did you mean %s?)", wrong[0].Kind, wrong[0].Near)
	}
	if len(lines) > 0 {
		return errors.New(installsMissing + strings.Join(lines, ", "))
	}
	return nil
}

const installsMissing = "the chart holds more than everyday kinds in its namespace; if that is right, add to module(installs = […]) of module.star: "

// missingInstalls are the lines that would allow the objects, each once; wrong are objects of no kind that there is.
func missingInstalls(t Target, objects []object) (lines []string, wrong []Missing) {
	for _, o := range objects {
		if o.test || builtins.MayInstall(t.Installs, o.ref(t.Namespace), t.Namespace) {
			continue
		}
		if near := nearKind(o.APIVersion, o.Kind); near != "" {
			wrong = append(wrong, Missing{Kind: o.Kind, Near: near})
			continue
		}
		ref := o.ref(t.Namespace)
		if line := builtins.InstallLine(ref, t.Namespace); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, wrong
}

// limitList is limit for what is about to be sent: the last word.
func (m *Manager) limitList(t Target, list []stored) error {
	var objects []object
	for _, s := range list {
		objects = append(objects, object{
			APIVersion: s.key.APIVersion, Kind: s.key.Kind, Namespace: s.key.Namespace, Name: s.key.Name,
			token: effect.HoldsToken(s.key.APIVersion, s.key.Kind, s.obj.Object),
		})
	}
	return m.limit(t, objects)
}

// lookupClient answers the lookup of templates within what the module names.
type lookupClient struct {
	dynamic.NamespaceableResourceInterface
	lookupIn
}

// lookupIn is one in a namespace, or, without one, in none or all.
type lookupIn struct {
	dynamic.ResourceInterface
	l          *lookups
	ref        effect.Ref // no name
	namespaced bool
}

// Namespace is the same in one namespace.
func (c lookupClient) Namespace(namespace string) dynamic.ResourceInterface {
	in := c.lookupIn
	in.ResourceInterface, in.ref.Namespace = c.NamespaceableResourceInterface.Namespace(namespace), namespace
	return in
}

// Get reads one object.
func (c lookupClient) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	return c.lookupIn.Get(ctx, name, o, sub...)
}

// List reads all objects.
func (c lookupClient) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return c.lookupIn.List(ctx, o)
}

// Get reads one object.
func (c lookupIn) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	c.ref.Name = name
	if err := c.allowed(); err != nil {
		return nil, err
	}
	u, err := c.ResourceInterface.Get(ctx, name, o, sub...)
	if apierrors.IsNotFound(err) {
		c.l.answered(c.ref)
	}
	if err != nil {
		return nil, err
	}
	if c.l.instance.OwnsObject(c.ref.APIVersion, c.ref.Kind, u.Object) {
		return nil, c.ours()
	}
	c.saw(u)
	c.l.answered(c.ref, *u)
	return u, nil
}

// saw notes a Secret: what it holds is shown to nobody.
func (c lookupIn) saw(u *unstructured.Unstructured) {
	if c.ref.APIVersion == "v1" && c.ref.Kind == "Secret" {
		c.l.saw(map[string]any{"kind": "Secret", "data": u.Object["data"]})
	}
}

// ours is the error about an object that belongs to Starling itself.
func (c lookupIn) ours() error {
	return fmt.Errorf("lookup of %s: it belongs to Starling itself", c.ref)
}

// List reads the objects of a namespace.
func (c lookupIn) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := c.allowed(); err != nil {
		return nil, err
	}
	list, err := c.ResourceInterface.List(ctx, o)
	if err != nil {
		return nil, err
	}
	list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return c.l.instance.OwnsObject(c.ref.APIVersion, c.ref.Kind, u.Object)
	})
	for i := range list.Items {
		c.saw(&list.Items[i])
	}
	c.l.answered(c.ref, list.Items...)
	return list, nil
}

func (c lookupIn) allowed() error {
	if c.ref.Name != "" && c.l.instance.Owns(c.ref) {
		return c.ours()
	}
	if builtins.MayLookUp(c.l.target.Lookup, c.ref, c.namespaced, c.l.target.Namespace) {
		return nil
	}
	what := c.ref.Kind
	if c.ref.Name != "" {
		what = c.ref.String()
	} else if c.ref.Namespace != "" {
		what += " in " + c.ref.Namespace
	}
	return fmt.Errorf("lookup of %s is not allowed; if that is right, add to module(lookup = […]) of module.star: %s",
		what, builtins.LookupLine(c.ref, c.namespaced, c.l.target.Namespace))
}
