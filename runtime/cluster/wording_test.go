package cluster

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	webhook "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/starling-operator/starling/runtime/effect"
)

// Each row of the table is about something that libraries of the API server say, and so are patterns beside it; the
// real control plane says in tests of e2e/ which rights are missing.
func TestEachRowIsSaid(t *testing.T) {
	fields := applies(t)
	_, number := fields("a", `{"data": {"port": 1}}`)
	_, unknown := fields("a", `{"dta": {}}`)
	field := json.Unmarshal([]byte(`{"spec": {"replicas": "two"}}`), &appsv1.Deployment{})
	object := json.Unmarshal([]byte("[]"), &appsv1.Deployment{})
	found := map[int]bool{}
	for _, err := range []error{number, unknown, field, object} {
		text := err.Error()
		for i := range rewordings() {
			better := rewordings()[i : i+1].Rewrite(text)
			found[i] = found[i] || better != text
			text = better
		}
	}
	for i, row := range rewordings() {
		if !found[i] {
			t.Errorf("nothing says what this row is about; make something say it, or leave it out: %s", row.Text)
		}
	}

	live, err := fields("a", `{"data": {"port": "1"}}`)
	if err != nil {
		t.Fatal(err)
	}
	_, conflict := fields("b", `{"data": {"port": "2"}}`, live)
	denied := webhook.ToStatusErr("policy.example.com", &metav1.Status{Message: "no", Code: http.StatusBadRequest})
	for name, c := range map[string]struct {
		err  error
		kind string
		want string
	}{
		"an unknown field":   {unknown, "ConfigMap", "the kind has no field dta (did you mean data?)"},
		"a field of another": {conflict, "ConfigMap", `other managers own fields of it (.data.port: a)`},
		"a webhook":          {denied, "Secret", `admission webhook "policy.example.com" denied the request; what else it says is not shown`},
	} {
		said := (&Client{}).describe(asStatus(c.err), action{word: "apply", ref: effect.Ref{APIVersion: "v1", Kind: c.kind, Name: "web"}})
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: got %s, want %s; it is said as: %v", name, said, c.want, c.err)
		}
	}
}

// asStatus is an error as the API server answers it.
func asStatus(err error) error {
	if status, is := err.(apierrors.APIStatus); is {
		s := status.Status()
		return &apierrors.StatusError{ErrStatus: s}
	}
	return apierrors.NewInternalError(err)
}

// applies returns a server-side apply to a ConfigMap.
func applies(t *testing.T) func(manager, fields string, live ...*corev1.ConfigMap) (*corev1.ConfigMap, error) {
	t.Helper()
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	types, known := applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme
	of, err := managedfields.NewDefaultFieldManager(types, known, known, known, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(manager, fields string, live ...*corev1.ConfigMap) (*corev1.ConfigMap, error) {
		patch := map[string]any{}
		if err := json.Unmarshal([]byte(fields), &patch); err != nil {
			t.Fatal(err)
		}
		patch["apiVersion"], patch["kind"], patch["metadata"] = "v1", "ConfigMap", map[string]any{"name": "web"}
		now := append(live, &corev1.ConfigMap{})[0]
		out, err := of.Apply(now, &unstructured.Unstructured{Object: patch}, manager, false)
		if err != nil {
			return nil, err
		}
		return out.(*corev1.ConfigMap), nil
	}
}
