package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// in answers the lookups of templates until ctx ends.
func (l *lookups) in(ctx context.Context) helm.Lookup {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		object, err := l.find(ctx, effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
		if err != nil && !apierrors.IsNotFound(err) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.failed = err
		}
		return object, err
	}
}

// find reads what a template looks up, within what the module names.
func (l *lookups) find(ctx context.Context, of effect.Ref) (map[string]any, error) {
	gv, err := schema.ParseGroupVersion(of.APIVersion)
	if err != nil {
		return nil, errors.New("lookup: apiVersion " + of.APIVersion + " is not group/version")
	}
	mapping, err := l.m.o.Mapper.RESTMapping(gv.WithKind(of.Kind).GroupKind(), gv.Version)
	if meta.IsNoMatchError(err) {
		return nil, &lane.Awaits{Err: fmt.Errorf("lookup: the cluster does not serve kind %s of %s", of.Kind, of.APIVersion), For: lane.AwaitsKind}
	}
	if err != nil {
		return nil, &lane.Passing{Err: errors.New(err.Error())} // whatever its kind: it is no answer
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if !namespaced {
		of.Namespace = ""
	}
	if err := l.allowed(of, namespaced); err != nil {
		return nil, err
	}
	client := l.m.dynamic.Resource(mapping.Resource).Namespace(of.Namespace)
	if of.Name == "" {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
			return l.m.instance().OwnsObject(of.APIVersion, of.Kind, u.Object)
		})
		l.answered(of, list.Items...)
		return list.UnstructuredContent(), nil
	}
	u, err := client.Get(ctx, of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.answered(of)
	}
	if err != nil {
		return nil, err
	}
	if l.m.instance().OwnsObject(of.APIVersion, of.Kind, u.Object) {
		return nil, ours(of)
	}
	l.answered(of, *u)
	return u.Object, nil
}

// found is what a lookup has found.
type found struct {
	digest  string
	objects int
}

// answered notes the objects that a lookup has found. The writers of their fields, and the version, are no part of the
// answer. All else is, the uid too: nobody can guess it, and so nothing that a Secret holds.
func (l *lookups) answered(of effect.Ref, objects ...unstructured.Unstructured) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var texts []string
	for _, u := range objects {
		plain, metadata := effect.WithMetadata(u.Object)
		delete(metadata, "managedFields")
		delete(metadata, "resourceVersion")
		text, _ := json.Marshal(plain) // it has come as JSON
		texts = append(texts, string(text))
		if of.APIVersion == "v1" && of.Kind == "Secret" { // what it holds is shown to nobody
			l.seen = append(l.seen, map[string]any{"kind": "Secret", "data": u.Object["data"]})
		}
	}
	if l.answers == nil {
		l.answers = map[effect.Ref]found{}
	}
	l.answers[of] = found{chart.Digest(texts...), len(objects)}
}

// digestOf covers answers; "" says that nothing was asked.
func digestOf(answers map[effect.Ref]found) string {
	if len(answers) == 0 {
		return ""
	}
	var lines []string
	for of, found := range answers {
		text, _ := json.Marshal([]string{of.APIVersion, of.Kind, of.Namespace, of.Name, found.digest})
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return chart.Digest(strings.Join(lines, "\n"))
}
