package webhook

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

const (
	registration   = "admissionregistration.k8s.io/v1"
	kindValidating = "ValidatingWebhookConfiguration"
	kindMutating   = "MutatingWebhookConfiguration"
	definitions    = "apiextensions.k8s.io/v1"
	kindDefinition = "CustomResourceDefinition"
	// labelNamespace is on every namespace, with its name.
	labelNamespace = "kubernetes.io/metadata.name"
	kubeSystem     = "kube-system"
)

// Endpoint says how the API server reaches hooks.
type Endpoint struct {
	// Address is where the server listens, HOST:PORT; port 0 takes a free one.
	Address string
	// Always serves there whether a hook takes requests or not.
	Always bool
	// Reach says how the API server comes to that address.
	Reach Reach
	// Unreachable, when set, says why it cannot come there: then nothing is registered, and the log says so.
	Unreachable string
	// CertDir is a folder with tls.crt, tls.key and ca.crt; empty: own certificates in a Secret.
	CertDir string
	// ClientCA is a file with authorities. Clients must show a certificate of one; empty: anybody may ask.
	ClientCA string
	// Serving is called once the server answers; nil: nothing is.
	Serving func()
}

// Reach says how the API server comes to us: by a Service of the operator's namespace, or by a URL.
type Reach struct {
	Service string
	Port    int
	// URL begins with https:// and ends without a slash; empty: by Service.
	URL string
}

// ParseReach reads --webhook-service, "NAME" or "NAME:PORT", and --webhook-url.
func ParseReach(service, base string) (Reach, error) {
	if base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return Reach{}, fmt.Errorf("--webhook-url %q: want https://HOST:PORT, where the API server reaches this starling", base)
		}
		return Reach{URL: strings.TrimRight(base, "/")}, nil
	}
	r := Reach{Service: service, Port: 443}
	if name, port, ok := strings.Cut(service, ":"); ok {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return Reach{}, fmt.Errorf("--webhook-service %q: %q is no port", service, port)
		}
		r.Service, r.Port = name, n
	}
	if len(validation.IsDNS1035Label(r.Service)) > 0 {
		return Reach{}, fmt.Errorf("--webhook-service %q: want NAME or NAME:PORT of a Service in the operator's namespace", service)
	}
	return r, nil
}

// names are those that the serving certificate must be for.
func (r Reach) names(namespace string) []string {
	if r.URL == "" {
		at := r.Service + "." + namespace
		return []string{at + ".svc", at, at + ".svc.cluster.local"}
	}
	u, err := url.Parse(r.URL)
	if err != nil { // as it was checked
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return []string{ip.String()}
	}
	return []string{u.Hostname()}
}

// client is a WebhookClientConfig.
func (r Reach) client(namespace, path string, bundle []byte) map[string]any {
	out := map[string]any{"caBundle": base64.StdEncoding.EncodeToString(bundle)}
	if r.URL != "" {
		out["url"] = r.URL + path
		return out
	}
	out["service"] = map[string]any{"name": r.Service, "namespace": namespace, "path": path, "port": int64(r.Port)}
	return out
}

// shape is what the objects of an instance have in common.
type shape struct {
	namespace, instance string
	reach               Reach
	bundle              []byte
}

// admission makes the configuration object of a binding. resource is that of its kind, when it names one, module are
// the labels of the module. All that the API server would fill in is there, so that what it has can be compared.
func (s shape) admission(h *generation.Hook, b *builtins.Binding, resource string, module map[string]string) (map[string]any, error) {
	a := b.Admission
	objects, err := selector(a.Labels)
	if err != nil {
		return nil, err
	}
	namespaces, err := s.namespaces(a)
	if err != nil {
		return nil, err
	}
	hook := map[string]any{
		"name":                    webhookName(h, b),
		"clientConfig":            s.reach.client(s.namespace, pathOf(h, b), s.bundle),
		"rules":                   rules(a, resource),
		"failurePolicy":           a.FailurePolicy,
		"matchPolicy":             a.MatchPolicy,
		"namespaceSelector":       namespaces,
		"objectSelector":          objects,
		"sideEffects":             a.SideEffects,
		"timeoutSeconds":          int64(a.Timeout.Seconds()),
		"admissionReviewVersions": []any{"v1"},
	}
	if a.Mutate {
		hook["reinvocationPolicy"] = "Never"
		if a.Reinvoke {
			hook["reinvocationPolicy"] = "IfNeeded"
		}
	}
	if len(a.Conditions) > 0 {
		conditions := make([]any, len(a.Conditions))
		for i, c := range a.Conditions {
			conditions[i] = map[string]any{"name": c.Name, "expression": c.Expression}
		}
		hook["matchConditions"] = conditions
	}
	labels := map[string]any{}
	for key, value := range module {
		labels[key] = value
	}
	labels[effect.InstanceLabel], labels[effect.ModuleLabel] = s.instance, h.Module // by which they are found
	return map[string]any{
		"apiVersion": registration, "kind": kindOf(b),
		"metadata": map[string]any{
			"name":        objectName(s.instance, h, b),
			"labels":      labels,
			"annotations": map[string]any{annotationHook: h.ID},
		},
		"webhooks": []any{hook},
	}, nil
}

// kindOf is the kind of the configuration object of a binding.
func kindOf(b *builtins.Binding) string {
	if b.Admission.Mutate {
		return kindMutating
	}
	return kindValidating
}

func rules(a *builtins.AdmissionBinding, resource string) []any {
	all := a.Rules
	if all == nil {
		group, version, ok := strings.Cut(a.APIVersion, "/")
		if !ok {
			group, version = "", a.APIVersion
		}
		all = []builtins.AdmissionRule{{
			Groups: []string{group}, Versions: []string{version}, Resources: []string{resource},
			Operations: a.Operations, Scope: a.Scope,
		}}
	}
	out := make([]any, len(all))
	for i, r := range all {
		out[i] = map[string]any{
			"apiGroups": texts(r.Groups), "apiVersions": texts(r.Versions), "resources": texts(r.Resources),
			"operations": texts(r.Operations), "scope": r.Scope,
		}
	}
	return out
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// namespaces is the selector of namespaces. Not covered are kube-system, without which
// nothing gets going again, unless it is named, and never the operator's own namespace: a
// webhook that does not answer must not keep the one from being started who would answer.
func (s shape) namespaces(a *builtins.AdmissionBinding) (map[string]any, error) {
	out, err := selector(a.NamespaceLabels)
	if err != nil {
		return nil, err
	}
	expressions, _ := out["matchExpressions"].([]any)
	if a.Namespaces != nil {
		expressions = append(expressions, expression("In", a.Namespaces))
	}
	never := append([]string{s.namespace}, a.ExcludeNamespaces...)
	if !slices.Contains(a.Namespaces, kubeSystem) {
		never = append(never, kubeSystem)
	}
	slices.Sort(never)
	out["matchExpressions"] = append(expressions, expression("NotIn", slices.Compact(never)))
	return out, nil
}

func expression(operator string, values []string) map[string]any {
	return map[string]any{"key": labelNamespace, "operator": operator, "values": texts(values)}
}

// selector is a LabelSelector of kubectl's text.
func selector(text string) (map[string]any, error) {
	parsed, err := metav1.ParseToLabelSelector(text)
	if err != nil { // as it was checked
		return nil, fmt.Errorf("%q is no label selector: %w", text, err)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(parsed)
}

// conversion is the part of a CustomResourceDefinition that is ours.
func (s shape) conversion(h *generation.Hook, b *builtins.Binding) map[string]any {
	return map[string]any{
		"apiVersion": definitions, "kind": kindDefinition,
		"metadata": map[string]any{
			"name":        b.Convert.CRD,
			"annotations": map[string]any{effect.ConvertedByAnnotation: s.instance},
		},
		"spec": map[string]any{"conversion": map[string]any{
			"strategy": "Webhook",
			"webhook": map[string]any{
				"clientConfig":             s.reach.client(s.namespace, pathOf(h, b), s.bundle),
				"conversionReviewVersions": []any{"v1"},
			},
		}},
	}
}
