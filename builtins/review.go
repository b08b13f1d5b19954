package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// Review is what the API server asks a validating or mutating hook about. All of it is only read once it was handed
// over. The tags are its names in the record of a run, which has OldObject and Options in its own form.
type Review struct {
	UID string `cbor:"uid,omitempty"`
	// Operation is CREATE, UPDATE, DELETE or CONNECT.
	Operation string `cbor:"operation,omitempty"`
	// Object is the object as it will be, OldObject as it was; nil where there is none.
	Object    map[string]any `cbor:"object"`
	OldObject map[string]any `cbor:"-"`
	Namespace string         `cbor:"namespace,omitempty"`
	// Name is empty when the server makes it up.
	Name string `cbor:"name,omitempty"`
	// APIVersion and Kind are those of Object.
	APIVersion string `cbor:"apiVersion,omitempty"`
	Kind       string `cbor:"kind,omitempty"`
	// Resource is the plural name, in ResourceAPIVersion.
	Resource           string `cbor:"resource,omitempty"`
	ResourceAPIVersion string `cbor:"resourceAPIVersion,omitempty"`
	Subresource        string `cbor:"subresource,omitempty"`
	// Asked is the request as its client has made it: in another version, or on another resource,
	// when the API server has converted it for the hook. Nil: as it is here.
	Asked   *ReviewTarget  `cbor:"asked,omitempty"`
	User    ReviewUser     `cbor:"user"`
	DryRun  bool           `cbor:"dryRun,omitempty"`
	Options map[string]any `cbor:"-"`
	// Late, when set, decodes "old_object" or "options" once a hook looks at it:
	// most do not. OldObject and Options are nil then.
	Late func(name string) (map[string]any, error) `cbor:"-"`
}

// ReviewTarget is what a request is about.
type ReviewTarget struct {
	APIVersion, Kind             string
	Resource, ResourceAPIVersion string
	Subresource                  string
}

// asked is what the client has asked for.
func (r *Review) asked() ReviewTarget {
	if r.Asked != nil {
		return *r.Asked
	}
	version := cmp.Or(r.ResourceAPIVersion, r.APIVersion)
	return ReviewTarget{r.APIVersion, r.Kind, r.Resource, version, r.Subresource}
}

// ReviewUser is who makes the change.
type ReviewUser struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Request makes the request that a hook answers at the binding of that name.
func (r *Review) Request(binding string) *Request {
	asked := r.asked()
	version := cmp.Or(r.ResourceAPIVersion, asked.ResourceAPIVersion)
	fields := starlark.StringDict{
		"resource_api_version":         starlark.String(version),
		"request_api_version":          starlark.String(asked.APIVersion),
		"request_kind":                 starlark.String(asked.Kind),
		"request_resource":             starlark.String(asked.Resource),
		"request_resource_api_version": starlark.String(asked.ResourceAPIVersion),
		"request_subresource":          starlark.String(asked.Subresource),

		"uid":         starlark.String(r.UID),
		"operation":   starlark.String(r.Operation),
		"object":      objectOrNone(r.Object),
		"old_object":  objectOrNone(r.OldObject),
		"namespace":   starlark.String(r.Namespace),
		"name":        starlark.String(r.Name),
		"api_version": starlark.String(r.APIVersion),
		"kind":        starlark.String(r.Kind),
		"resource":    starlark.String(r.Resource),
		"subresource": starlark.String(r.Subresource),
		"user":        r.User.value(),
		"dry_run":     starlark.Bool(r.DryRun),
		"options":     objectOrNone(r.Options),
	}
	if r.Late != nil {
		for _, name := range lateFields {
			delete(fields, name)
		}
	}
	fields.Freeze()
	return &Request{Binding: binding, Fields: fields, Object: r.Object, late: r.Late, Review: r}
}

// lateFields are those of [Review].Late.
var lateFields = [...]string{"old_object", "options"}

func (u *ReviewUser) value() starlark.Value {
	extra := starlark.NewDict(len(u.Extra))
	for _, key := range slices.Sorted(maps.Keys(u.Extra)) {
		_ = extra.SetKey(starlark.String(key), stringList(u.Extra[key])) // a new dict takes any string
	}
	return starlarkstruct.FromStringDict(starlark.String("user"), starlark.StringDict{
		"name": starlark.String(u.Name), "uid": starlark.String(u.UID),
		"groups": stringList(u.Groups), "extra": extra,
	})
}

func stringList(texts []string) *starlark.List {
	return listOf(texts, func(s string) starlark.Value { return starlark.String(s) })
}

// listOf is a list of a value for each element.
func listOf[T any](elems []T, value func(T) starlark.Value) *starlark.List {
	out := make([]starlark.Value, len(elems))
	for i, e := range elems {
		out[i] = value(e)
	}
	return starlark.NewList(out)
}

// textOrNone is a text, None for an empty one.
func textOrNone(text string) starlark.Value {
	if text == "" {
		return starlark.None
	}
	return starlark.String(text)
}

// plainTexts are texts by name as plain data, without what is no UTF-8.
func plainTexts(texts map[string]string) map[string]any {
	out := make(map[string]any, len(texts))
	for name, text := range texts {
		out[validText(name)] = validText(text)
	}
	return out
}

func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func objectOrNone(m map[string]any) starlark.Value {
	if m == nil {
		return starlark.None
	}
	return object.New(m)
}

func callDeny(c *call) (starlark.Value, error) {
	d := Denial{Message: c.Str("msg"), Code: c.IntOr("code", 403)}
	if strings.TrimSpace(d.Message) == "" {
		return nil, errors.New("msg: it is empty; say why the change is refused")
	}
	if len(d.Message) > maxDenial {
		return nil, fmt.Errorf("msg: it is longer than %d KiB", maxDenial>>10)
	}
	if d.Code < 400 || d.Code > 599 {
		return nil, fmt.Errorf("code: got %d, want an HTTP status from 400 to 599", d.Code)
	}
	return &declared[Denial]{"denial", d}, nil
}

const (
	maxDenial   = 16 << 10
	maxWarnings = 100
	// maxWarning is what the API server shows of a warning.
	maxWarning = 256
)

func callWarn(c *call) (starlark.Value, error) {
	msg := message.Line(c.Str("msg")) // it becomes an HTTP header
	if msg == "" {
		return nil, errors.New("msg: it is empty")
	}
	if len(c.run.Response.Warnings) == maxWarnings {
		return nil, &spec.LimitError{Limit: "effects", Detail: fmt.Sprintf("more than %d warnings", maxWarnings)}
	}
	c.run.Response.Warnings = append(c.run.Response.Warnings, message.Fit(msg, maxWarning))
	return nil, nil
}

// respondAdmission reads what a validating or mutating hook returned.
func (r *Run) respondAdmission(b *AdmissionBinding, v starlark.Value) error {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil
	case *declared[Denial]:
		r.Response.Denied = &v.val
		return nil
	}
	switch {
	case !b.Mutate:
		return fmt.Errorf("the hook returned %s; a validating hook returns None to let the change pass, or deny(…)", v.Type())
	case !spec.IsDict(v):
		return fmt.Errorf("the hook returned %s; a mutating hook returns the changed object, None to leave it as it is, or deny(…)", v.Type())
	}
	var was map[string]any
	if r.Request != nil {
		was = r.Request.Object
	}
	if was == nil {
		return errors.New("the hook returned an object, but there is none that could be changed; return None, or deny(…)")
	}
	if v == r.Request.Fields["object"] {
		return nil
	}
	plain, err := object.ToPlainAt(v, nil)
	if err != nil {
		return fmt.Errorf("the object that the hook returned: %w", err)
	}
	is := plain.(map[string]any) // as its type was checked
	if err := sameIdentity(was, is); err != nil {
		return fmt.Errorf("the object that the hook returned: %w", err)
	}
	r.Response.Object = is
	return nil
}

// sameIdentity makes sure that an object is still the one that it was.
func sameIdentity(was, is map[string]any) error {
	for _, key := range []string{"apiVersion", "kind"} {
		if err := unchangedText(key, was[key], is[key]); err != nil {
			return err
		}
	}
	return sameMetadata(was, is)
}

func sameMetadata(was, is map[string]any) error {
	before, _ := was["metadata"].(map[string]any)
	after, ok := is["metadata"].(map[string]any)
	if !ok && before != nil {
		return errors.New("metadata is missing or no dict; change a copy, dict(…), of the object that was given")
	}
	for _, key := range []string{"name", "namespace", "uid"} {
		if before[key] == nil && key == "name" {
			continue // made up by the server, or by the hook
		}
		if err := unchangedText("metadata."+key, before[key], after[key]); err != nil {
			return err
		}
	}
	return nil
}

func unchangedText(path string, was, is any) error {
	if was == is {
		return nil
	}
	before, _ := was.(string)
	after, ok := is.(string)
	if !ok && is != nil {
		return fmt.Errorf("%s is no text", path)
	}
	if before == after {
		return nil
	}
	if after == "" {
		return fmt.Errorf("%s is missing; it was %q and must stay so", path, spec.Clip(before))
	}
	return fmt.Errorf("%s has become %q; it was %q and must stay so", path, spec.Clip(after), spec.Clip(before))
}
