package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// ConvertBinding is k8s.convert(...).
type ConvertBinding struct {
	// CRD is the name of the CustomResourceDefinition: "crontabs.stable.example.com".
	CRD string
	// Steps are the functions by the versions they lead from and to, without the
	// group: {"v1alpha1", "v1"}.
	// Of the first hook of a module that converts the CRD they are those of all its hooks.
	Steps map[[2]string]starlark.Callable `json:"-"`
	// Alone are those of Steps that take the object alone, though Snapshots are given to the others: those of
	// other hooks.
	Alone map[[2]string]bool `json:"-"`
	// Joined says that another hook of the module answers, with the functions of this one.
	Joined bool
	// Snapshots names watches of the hook whose snapshots the functions are given; nil: none.
	Snapshots []string
	Pos       string
}

// Converts says that requests for conversions come to the binding.
func (b *Binding) Converts() bool { return b.Convert != nil && !b.Convert.Joined }

// Group is the API group of the CRD's objects.
func (b *ConvertBinding) Group() string {
	_, group, _ := strings.Cut(b.CRD, ".")
	return group
}

func convertSpec() spec.Spec {
	return declare("k8s.convert", spec.InLoad, spec.NoEffect, callConvert, spec.Required("crd", spec.String),
		spec.Required("functions", spec.Dict), spec.Keyword("snapshots", spec.Strings, "[]"),
		spec.Keyword("name", spec.String, "None"))
}

// convertSnapshots holds snapshots= of k8s.convert to the watches of the hook.
func (h *HookDecl) convertSnapshots() error {
	for _, b := range h.Bindings {
		if b.Convert == nil {
			continue
		}
		for _, name := range b.Convert.Snapshots {
			if w := h.Binding(name); w == nil || w.Watch == nil {
				return fmt.Errorf("%s: snapshots: the hook has no watch %q; give one name= and put it into on=", b.Convert.Pos, spec.Clip(name))
			}
		}
	}
	return nil
}

// maxSteps bounds the functions of one binding.
const maxSteps = 100

func callConvert(c *call) (starlark.Value, error) {
	b := &ConvertBinding{CRD: c.Str("crd"), Steps: map[[2]string]starlark.Callable{}, Snapshots: c.Strings("snapshots"), Pos: c.Pos()}
	name, err := c.shortName("name")
	if err != nil {
		return nil, err
	}
	if len(validation.IsDNS1123Subdomain(b.CRD)) > 0 || strings.Count(b.CRD, ".") < 2 {
		return nil, fmt.Errorf(`crd: %q is no name of a CustomResourceDefinition; write plural and group, "crontabs.stable.example.com"`, spec.Clip(b.CRD))
	}
	dict, ok := c.Arg("functions").(*starlark.Dict)
	if !ok || dict.Len() == 0 || dict.Len() > maxSteps {
		return nil, fmt.Errorf(`functions: want a dict of 1 to %d functions, {("v1alpha1", "v1"): up}`, maxSteps)
	}
	for k, v := range dict.Entries() {
		step, err := stepOf(k)
		if err != nil {
			return nil, fmt.Errorf("functions: %w", err)
		}
		at := fmt.Sprintf("functions: (%q, %q)", step[0], step[1])
		fn, ok := v.(starlark.Callable)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want function", at, v.Type())
		}
		err = takesOne(fn, "the object")
		if len(b.Snapshots) > 0 {
			err = takes(fn, 2, "two, the object and the snapshots")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		b.Steps[step] = fn
	}
	return binding(Binding{Name: name, Convert: b})
}

// stepOf reads a key of functions=.
func stepOf(k starlark.Value) (step [2]string, err error) {
	pair, ok := k.(starlark.Tuple)
	if !ok || len(pair) != 2 || !spec.IsString(pair[0]) || !spec.IsString(pair[1]) {
		return step, fmt.Errorf(`key %s: want two versions, ("v1alpha1", "v1")`, spec.Clip(k.String()))
	}
	for i, e := range pair {
		step[i], _ = starlark.AsString(e)
		if group, v, cut := strings.Cut(step[i], "/"); cut && v != "" {
			return step, fmt.Errorf("key %s: the group, %s, is in the name of the CRD already; write %q", spec.Clip(k.String()), spec.Clip(group), spec.Clip(v))
		}
		if len(validation.IsDNS1035Label(step[i])) > 0 {
			return step, fmt.Errorf("key %s: %q is no version", spec.Clip(k.String()), spec.Clip(step[i]))
		}
	}
	if step[0] == step[1] {
		return step, fmt.Errorf("key %s: from a version to itself there is nothing to convert", spec.Clip(k.String()))
	}
	return step, nil
}

// Versions are those that the functions know, as Kubernetes orders them: v1alpha1,
// v1beta1, v1.
func (b *ConvertBinding) Versions() []string {
	var out []string
	for step := range b.Steps {
		out = append(out, step[0], step[1])
	}
	slices.SortFunc(out, kubeversion.CompareKubeAwareVersionStrings)
	return slices.Compact(out)
}

// Chain returns the versions to go through from one to another, both included: the
// fewest, and of several such chains always the same. Nil: there is none.
func (b *ConvertBinding) Chain(from, to string) []string {
	versions := b.Versions()
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			chain := []string{at}
			for at != from {
				at = came[at]
				chain = append(chain, at)
			}
			slices.Reverse(chain)
			return chain
		}
		for _, next := range versions {
			if _, seen := came[next]; !seen && b.Steps[[2]string{at, next}] != nil {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// Unreachable are the pairs of known versions between which no chain leads.
func (b *ConvertBinding) Unreachable() [][2]string {
	var out [][2]string
	versions := b.Versions()
	for _, from := range versions {
		for _, to := range versions {
			if from != to && b.Chain(from, to) == nil {
				out = append(out, [2]string{from, to})
			}
		}
	}
	return out
}

// conversion makes the conversions of one request.
type conversion struct {
	b      *ConvertBinding
	to     string // the version, without the group
	chains map[string][]string
	more   starlark.Tuple // what functions are given beside the object
}

// First is the function of the lowest pair of versions: it stands for all.
func (b *ConvertBinding) First() starlark.Callable {
	keys := slices.SortedFunc(maps.Keys(b.Steps), func(x, y [2]string) int {
		return cmp.Or(strings.Compare(x[0], y[0]), strings.Compare(x[1], y[1]))
	})
	return b.Steps[keys[0]]
}

// Converted returns a function of Starlark that converts all objects of a request
// and keeps what comes out in response; converted counts them. It takes no arguments. Called
// this way, the limits of a run are those of the whole request. Of o only the snapshots count.
func (b *ConvertBinding) Converted(r *Request, o CtxOptions, response *Response, converted *atomic.Int64) starlark.Callable {
	return starlark.NewBuiltin("k8s.convert", func(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		group, to, _ := strings.Cut(r.To, "/")
		if group != b.Group() {
			return nil, spec.Finalf("the API server asks for %s; the functions are for %s", spec.Clip(r.To), b.CRD)
		}
		c := conversion{b: b, to: to, chains: map[string][]string{}}
		if len(b.Snapshots) > 0 {
			c.more = starlark.Tuple{b.snapshots(o)}
		}
		response.Objects = make([]map[string]any, 0, len(r.Objects))
		for _, obj := range r.Objects {
			out, err := c.object(t, obj)
			if err != nil {
				return nil, err
			}
			response.Objects = append(response.Objects, out)
			converted.Add(1)
		}
		return starlark.None, nil
	})
}

// snapshots are what functions see of those of the hook.
func (b *ConvertBinding) snapshots(o CtxOptions) starlark.Value {
	named := make(map[string]starlark.Value, len(b.Snapshots))
	for _, name := range b.Snapshots {
		named[name] = nil // made when it is asked for
	}
	return &watches{"snapshots", named, o.Snapshots, o.Lacking, o.Asked}
}

// object converts one object along its chain.
func (c *conversion) object(t *starlark.Thread, obj map[string]any) (map[string]any, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	group, from, _ := strings.Cut(apiVersion, "/")
	if group != c.b.Group() || from == "" {
		return nil, spec.Finalf("the request has an object of %q; the functions convert %s", spec.Clip(apiVersion), c.b.CRD)
	}
	chain, known := c.chains[from]
	if !known {
		chain = c.b.Chain(from, c.to)
		c.chains[from] = chain
	}
	if chain == nil {
		return nil, spec.Finalf("no function leads from %s to %s; add to k8s.convert: (%q, %q)", spec.Clip(from), spec.Clip(c.to), spec.Clip(from), spec.Clip(c.to))
	}
	for i := 1; i < len(chain); i++ {
		var err error
		if obj, err = c.step(t, obj, chain[i-1], chain[i]); err != nil {
			return nil, err
		}
	}
	return obj, nil
}

// step calls one function and checks what it returns.
func (c *conversion) step(t *starlark.Thread, obj map[string]any, from, to string) (map[string]any, error) {
	given := object.New(obj)
	step, args := [2]string{from, to}, starlark.Tuple{given}
	if !c.b.Alone[step] {
		args = append(args, c.more...)
	}
	v, err := starlark.Call(t, c.b.Steps[step], args, nil)
	if err != nil {
		return nil, err
	}
	out, err := c.check(obj, given, v, to)
	if err != nil {
		return nil, spec.Finalf("%s to %s of %s: %w", from, to, spec.Clip(effect.RefOf(obj).String()), err)
	}
	return out, nil
}

// check makes a complete object of what a function returned.
func (c *conversion) check(was map[string]any, given *object.Object, v starlark.Value, to string) (map[string]any, error) {
	if !spec.IsDict(v) {
		return nil, fmt.Errorf("the function returned %s; it must return the converted object", v.Type())
	}
	var is map[string]any
	if v == starlark.Value(given) { // nothing but the version differs
		is = make(map[string]any, len(was))
		maps.Copy(is, was)
	} else {
		plain, err := object.ToPlain(v)
		if err != nil {
			return nil, err
		}
		is = plain.(map[string]any) // as its type was checked
	}
	want := c.b.Group() + "/" + to
	if got := is["apiVersion"]; got != nil && got != want && got != was["apiVersion"] {
		return nil, fmt.Errorf("apiVersion is %s, want %q; it may be left as it was", spec.Clip(fmt.Sprintf("%q", got)), want)
	}
	is["apiVersion"] = want
	if is["kind"] == nil {
		is["kind"] = was["kind"]
	}
	if err := unchangedText("kind", was["kind"], is["kind"]); err != nil {
		return nil, err
	}
	return is, keepMetadata(was, is)
}

// keepMetadata has an object keep its metadata but for labels and annotations: the
// API server takes no other change.
func keepMetadata(was, is map[string]any) error {
	before, _ := was["metadata"].(map[string]any)
	if is["metadata"] == nil {
		is["metadata"] = before
		return nil
	}
	after, ok := is["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata is no dict")
	}
	for _, key := range []string{"name", "namespace", "uid"} {
		if after[key] != nil {
			if err := unchangedText("metadata."+key, before[key], after[key]); err != nil {
				return err
			}
		}
	}
	kept := make(map[string]any, len(before))
	maps.Copy(kept, before)
	for _, key := range []string{"labels", "annotations"} {
		delete(kept, key)
		if after[key] == nil {
			continue
		}
		if _, ok := after[key].(map[string]any); !ok {
			return fmt.Errorf("metadata.%s is no dict", key)
		}
		kept[key] = after[key]
	}
	is["metadata"] = kept
	return nil
}
