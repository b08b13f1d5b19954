package release

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/runtime/effect"
)

// lookup is one lookup of a chart that another process renders; a list without a Name.
type lookup struct{ APIVersion, Kind, Namespace, Name string }

// answer is what it finds.
type answer struct {
	// Object is plain data as JSON, see packPlain.
	Object []byte
	// Missing: there is none. Err is why nobody knows.
	Missing bool
	Err     string
}

// ask answers a lookup as Helm would, from what the provider gives.
func (l lookup) ask(ctx context.Context, provider engine.ClientProvider) answer {
	var content map[string]any
	err := guard(func() (err error) { content, err = l.find(ctx, provider); return err })
	if apierrors.IsNotFound(err) {
		return answer{Missing: true}
	}
	if err != nil {
		return answer{Err: err.Error()}
	}
	data, err := packPlain(content)
	if err != nil {
		return answer{Err: err.Error()}
	}
	return answer{Object: data}
}

func (l lookup) find(ctx context.Context, provider engine.ClientProvider) (map[string]any, error) {
	all, namespaced, err := provider.GetClientFor(l.APIVersion, l.Kind)
	if err != nil {
		// Helm takes an error here for one whatever its kind.
		return nil, errors.New(err.Error())
	}
	var client dynamic.ResourceInterface = all
	if namespaced && l.Namespace != "" {
		client = all.Namespace(l.Namespace)
	}
	if l.Name == "" {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.UnstructuredContent(), nil
	}
	obj, err := client.Get(ctx, l.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.UnstructuredContent(), nil
}

// found is what a lookup has found.
type found struct {
	digest  string
	objects int
}

// answered notes the objects that a lookup has found. The writers of their fields, and the version, are no part of the
// answer. All else is, the uid too: nobody can guess it, and so nothing that a Secret holds.
func (l *lookups) answered(of effect.Ref, objects ...unstructured.Unstructured) {
	h := sha256.New()
	for _, u := range objects {
		plain := maps.Clone(u.Object)
		if meta, is := plain["metadata"].(map[string]any); is {
			meta = maps.Clone(meta)
			delete(meta, "managedFields")
			delete(meta, "resourceVersion")
			plain["metadata"] = meta
		}
		text, _ := json.Marshal(plain) // it has come as JSON
		part(h, string(text))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers == nil {
		l.answers = map[lookup]found{}
	}
	l.answers[lookup{of.APIVersion, of.Kind, of.Namespace, of.Name}] = found{sum(h), len(objects)}
}

// digest covers all answers; "" says that nothing was asked.
func (l *lookups) digest() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.answers) == 0 {
		return ""
	}
	var lines []string
	for of, found := range l.answers {
		text, _ := json.Marshal([]string{of.APIVersion, of.Kind, of.Namespace, of.Name, found.digest})
		lines = append(lines, string(text))
	}
	slices.Sort(lines)
	return textDigest(strings.Join(lines, "\n"))
}

// asBefore says whether a release that an earlier version has made, which kept no digest of what was looked up, has
// chart and values of today, and its chart renders to something else each time: then nobody knows of a change.
func (r *reconcile) asBefore() (bool, error) {
	was := r.last.Labels
	r.follow(r.rendered, was[LabelManifest] == r.want.Manifest)
	if was[LabelInputs] != inputsLookup || was[LabelChart] != r.want.Chart || was[LabelManifest] == r.want.Manifest || r.want.Lookups == "" {
		return false, nil
	}
	last, err := r.m.Last(r.ctx, r.t.Namespace, r.t.Name)
	if err != nil || last == nil {
		return false, err
	}
	then := r.t
	then.Values = last.Config
	values, err := json.Marshal(then.read())
	if err != nil {
		return false, err
	}
	if is, err := json.Marshal(r.t.read()); err != nil || string(is) != string(values) {
		return false, err
	}
	caps, err := r.m.capabilities()
	if err != nil {
		return false, err
	}
	again, err := r.m.render(r.ctx, r.t, caps, true)
	return err == nil && again.digest != r.want.Manifest, err
}
