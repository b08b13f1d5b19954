package builtins

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Live reads. They show the cluster before the run's own writes.

func k8sReadSpecs() []spec.Spec {
	apiVersion := spec.Required("api_version", spec.String)
	kind := spec.Required("kind", spec.String)
	unread := spec.Keyword("default", spec.Any, "None")
	return []spec.Spec{
		declare("k8s.get", spec.InRun|spec.InReview, spec.Reads, callGet, apiVersion, kind,
			spec.Required("name", spec.String), spec.Optional("namespace", spec.String, "None"), unread),
		declare("k8s.list", spec.InRun|spec.InReview, spec.Reads, callList, apiVersion, kind,
			spec.Optional("namespaces", spec.Strings, "None"), spec.Optional("labels", spec.Selector, "None"),
			spec.Optional("fields", spec.Selector, "None"), unread),
	}
}

func callGet(c *call) (starlark.Value, error) {
	m, _, err := c.readObject(effect.Ref{
		APIVersion: c.Str("api_version"), Kind: c.Str("kind"), Name: c.Str("name"), Namespace: c.Str("namespace"),
	})
	switch {
	case c.Arg("default") != nil && Unanswered(err):
		return c.Arg("default"), nil
	case err != nil || m == nil:
		return starlark.None, err
	}
	return object.New(m), nil
}

// Unanswered reports whether err says that nobody answers a question which may be asked:
// it is a [NoAnswerError], or one of a [Reader] or of [Run].Scope about a kind that cannot
// be read. default= holds then.
func Unanswered(err error) bool {
	var kind interface{ Unreadable() bool }
	return errors.As(err, new(*NoAnswerError)) || errors.As(err, &kind) && kind.Unreadable()
}

// readObject reads one object, nil when it is not there, and completes its
// reference.
func (c *call) readObject(given effect.Ref) (map[string]any, effect.Ref, error) {
	ref, namespaced, err := c.ref(given)
	if err != nil {
		if Unanswered(err) { // the grant is missed now, and not once the kind is served
			if _, denied := c.guard("get", "get", ref, false, nil); denied != nil {
				return nil, ref, denied
			}
		}
		return nil, ref, err
	}
	guard, err := c.guard("get", "get", ref, namespaced, nil)
	if err != nil {
		return nil, ref, err
	}
	for _, w := range c.run.Effects.Writes {
		for _, o := range w.Objects() {
			if o.IsA(ref.APIVersion, ref.Kind) && o.Namespace == ref.Namespace && o.Name == ref.Name {
				return nil, ref, fmt.Errorf("this run has written %s itself (%s); reads show the cluster before a run's writes", ref, w.Pos)
			}
		}
	}
	if c.run.Reader == nil {
		return nil, ref, errors.New("the cluster cannot be read here")
	}
	m, err := c.run.Reader.Get(c.run.context(), ref)
	if err != nil || m == nil {
		return nil, ref, err
	}
	if !c.run.Free && c.run.Instance.OwnsObject(ref.APIVersion, ref.Kind, m) {
		return nil, ref, c.notCovered("get", ref)
	}
	if !guard.Passes(c.run.Seal, ref, m) {
		return nil, ref, spec.Finalf("%s", guard.Refused)
	}
	return m, ref, nil
}

func callList(c *call) (starlark.Value, error) {
	found, err := c.list()
	switch {
	case c.Arg("default") != nil && Unanswered(err):
		return c.Arg("default"), nil
	case err != nil:
		return nil, err
	}
	return starlark.NewList(found), nil
}

func (c *call) list() ([]starlark.Value, error) {
	kind := effect.Ref{APIVersion: c.Str("api_version"), Kind: c.Str("kind")}
	if err := checkKind(kind.APIVersion, kind.Kind); err != nil {
		return nil, err
	}
	namespaced, err := c.namespaced(kind.APIVersion, kind.Kind)
	if err != nil {
		if Unanswered(err) {
			if denied := c.allowedList(kind, nil, false); denied != nil {
				return nil, denied
			}
		}
		return nil, err
	}
	namespaces, err := c.namespaces()
	if err != nil {
		return nil, err
	}
	if !namespaced {
		namespaces = nil
	}
	if err := c.allowedList(kind, namespaces, namespaced); err != nil {
		return nil, err
	}
	for _, w := range c.run.Effects.Writes {
		for _, o := range w.Objects() {
			if o.IsA(kind.APIVersion, kind.Kind) && (namespaces == nil || contains(namespaces, o.Namespace)) {
				return nil, fmt.Errorf("this run has written %s itself (%s); lists show the cluster before a run's writes, so list first", o, w.Pos)
			}
		}
	}
	labels, err := c.labelSelector("labels")
	if err != nil {
		return nil, err
	}
	fields, err := c.fieldSelector("fields")
	if err != nil {
		return nil, err
	}
	if c.run.Reader == nil {
		return nil, errors.New("the cluster cannot be read here")
	}
	found, err := c.run.Reader.List(c.run.context(), kind.APIVersion, kind.Kind, namespaces, labels, fields)
	if err != nil {
		return nil, err
	}
	elems := make([]starlark.Value, 0, len(found))
	for _, m := range found {
		if c.run.Free || !c.run.Instance.OwnsObject(kind.APIVersion, kind.Kind, m) {
			elems = append(elems, object.New(m))
		}
	}
	return elems, nil
}

// ref completes a reference: the namespace of the run where none was given, none
// for cluster-scoped kinds.
func (c *call) ref(r effect.Ref) (effect.Ref, bool, error) {
	if err := checkKind(r.APIVersion, r.Kind); err != nil {
		return r, false, err
	}
	if err := checkName(r.Name); err != nil {
		return r, false, fmt.Errorf("name: %w", err)
	}
	namespaced, err := c.namespaced(r.APIVersion, r.Kind)
	if err != nil {
		return r, false, err
	}
	switch {
	case !namespaced:
		r.Namespace = ""
	case r.Namespace == "":
		r.Namespace = c.run.Namespace
	default:
		if err := spec.DNSLabel(r.Namespace, 63); err != nil {
			return r, false, fmt.Errorf("namespace: %w", err)
		}
	}
	return r, namespaced, nil
}

func (c *call) namespaced(apiVersion, kind string) (bool, error) {
	if c.run.Scope == nil {
		return true, nil
	}
	return c.run.Scope(apiVersion, kind)
}
