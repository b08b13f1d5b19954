package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// webhookTree is that of an addon-operator whose hooks answer the API server.
var webhookTree = map[string]string{
	"010-web/values.yaml":           "web: {text: new}\nwebEnabled: true\n",
	"010-web/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-config}\ndata: {text: {{ .Values.web.text }}}\n",
	"020-guard/values.yaml":         "guardEnabled: true\n",
	"020-guard/hooks/guard.sh":      configured("kubernetesValidating:\n- name: guard.example.com\n" + covers("guarded")),
	"030-mark/values.yaml":          "markEnabled: true\n",
	"030-mark/hooks/mark.sh":        configured("kubernetesMutating:\n- name: mark.example.com\n" + covers("marked")),
	"040-lamps/values.yaml":         "lampsEnabled: true\n",
	"040-lamps/hooks/versions.sh":   configured("kubernetesCustomResourceConversion:\n- name: versions\n  crdName: lamps.$NS.example.com\n  conversions: [{fromVersion: v1alpha1, toVersion: v1}, {fromVersion: v1, toVersion: v1alpha1}]\n"),
}

func configured(bindings string) string {
	return "#!/bin/bash\nif [[ $1 == --config ]]; then\n  cat <<EOF\nconfigVersion: v1\n" + bindings + "EOF\nfi\n"
}

// covers are the selectors and rules of a binding for ConfigMaps with a label.
func covers(label string) string {
	return "  namespace: {labelSelector: {matchLabels: {e2e: $NS}}}\n  labelSelector: {matchLabels: {" + label + ": 'yes'}}\n" +
		"  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps], scope: Namespaced}]\n"
}

// The webhooks of an addon-operator are taken over while it runs, in the order that docs/from-addon-operator.md
// gives: at no time a request that they cover is refused for want of an answer, or passes without one, and the
// definition that is converted stays the object that it was.
func TestWebhooksAreTakenOverWithoutAGap(t *testing.T) {
	t.Parallel()
	role := webhookRole(mirrors)
	role.Hooks = append(role.Hooks, allow("apiextensions.k8s.io", "customresourcedefinitions", "list", "watch", "patch"))
	role.HooksIn["$NS"] = append(role.HooksIn["$NS"], rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"addon-operator-webhooks"}, Verbs: []string{"get"},
	})
	f := (&fixture{t: t, ns: shared.Namespace(t)}).beside("addon-operator", nil, role).alone("the next one has other flags")
	other := f.labelled()
	old := newOldServer(t)
	definition := f.oldDefinition(old)
	oldName := f.oldConfigurations(old)
	f.configure(map[string]string{"web": "text: new\n"})
	uid := func() types.UID {
		o, err := shared.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return o.GetUID()
	}
	before := uid()
	f.eventually("addon-operator answers", func() error { return f.covered(t.Context(), other) })

	// Brought over, and written.
	tree := t.TempDir()
	(&fixture{t: t, ns: f.ns, modules: tree}).write(webhookTree)
	if err := executable(tree); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program(), "new", "--from-addon-operator", tree, "--modules", f.modules).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.edit("020-guard/hooks/guard.star", `fail("not yet written: 020-guard/hooks/guard.sh", permanent = True)`, `return deny("the guard says no")`)
	f.edit("030-mark/hooks/mark.star", `fail("not yet written: 030-mark/hooks/mark.sh", permanent = True)`,
		`o = dict(ctx.request.object)`+"\n    o[\"metadata\"][\"labels\"][\"by-new\"] = \"yes\"\n    return o")
	for _, way := range [][4]string{{"v1alpha1", "v1", "colour", "hue"}, {"v1", "v1alpha1", "hue", "colour"}} {
		f.edit("040-lamps/hooks/versions.star", fmt.Sprintf("fail(%q)", "not yet written: "+way[0]+" to "+way[1]+" of "+definition),
			fmt.Sprintf("d = dict(obj)\n    d[\"spec\"][%q] = d[\"spec\"].pop(%q)\n    return d", way[3], way[2]))
	}
	for _, dir := range []string{"020-guard", "030-mark", "040-lamps"} {
		f.edit(dir+"/module.star", `return waiting("not yet written: hooks that answer the API server")`, "return True")
	}

	// From here on all is looked at, without end.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	looked := make(chan string, 1)
	go func() {
		var bad []string
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := f.covered(ctx, other); err != nil && ctx.Err() == nil && len(bad) < 5 {
				bad = append(bad, err.Error())
			}
		}
		if n < 10 {
			bad = append(bad, fmt.Sprintf("looked %d times only", n))
		}
		looked <- strings.Join(bad, "\n")
	}()

	// Starling begins beside it, with all releases paused.
	service := newService(t)
	first, second := webhookArgs(t)[0], webhookArgs(t)[0]
	service.to(first)
	f.start(first, service.url(), "--pause")
	f.waitState("web", status.ModulePaused)
	for _, name := range []string{"guard", "mark", "lamps"} {
		f.waitState(name, status.ModuleReady)
	}
	f.eventually("both answer", func() error {
		return holds(f.labelsOf(t.Context(), other), []string{"by-new:yes", "by-old:yes"})
	})
	f.eventually("Starling converts", func() error {
		o, err := shared.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
		if err != nil {
			return err
		}
		url, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "webhook", "clientConfig", "url")
		return holds(url, []string{service.ln.Addr().String()})
	})
	configurations := shared.Client.AdmissionregistrationV1()
	err1 := configurations.ValidatingWebhookConfigurations().Delete(t.Context(), oldName, metav1.DeleteOptions{})
	err2 := configurations.MutatingWebhookConfigurations().Delete(t.Context(), oldName, metav1.DeleteOptions{})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	old.waitQuiet(f, other)
	old.server.Close() // addon-operator is scaled to 0

	// A second process, which pauses nothing, takes over from the first one.
	next := (&fixture{t: t, ns: f.ns, name: f.name, modules: f.modules, kube: f.kube}).alone("it is one of two")
	next.start(second, service.url())
	next.waitReadyAs(false)
	service.to(second)
	if code := f.process.Stop(); code != 0 {
		t.Fatalf("stopped with exit code %d", code)
	}
	next.waitState("web", status.ModuleReady)
	stop()
	if bad := <-looked; bad != "" {
		t.Errorf("requests went wrong:\n%s", bad)
	}
	if after := uid(); after != before {
		t.Errorf("the definition was made anew: %s, then %s", before, after)
	}
}

// covered makes sure that a request is refused by a guard, and one is changed and one converted by
// somebody.
func (f *fixture) covered(ctx context.Context, other string) error {
	guarded := newConfigMap("some", nil)
	guarded.Labels = map[string]string{"guarded": "yes"}
	if _, err := shared.Client.CoreV1().ConfigMaps(other).Create(ctx, guarded, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil || !strings.Contains(err.Error(), "the guard says no") {
		return fmt.Errorf("guarded: %v", err)
	}
	if got := f.labelsOf(ctx, other); !strings.Contains(got, "by-") {
		return fmt.Errorf("marked: %s", got)
	}
	o, err := f.lamps("v1alpha1").Get(ctx, "one", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("converted: %w", err)
	}
	if colour, _, _ := unstructured.NestedString(o.Object, "spec", "colour"); colour != "red" {
		return fmt.Errorf("converted: %v", o.Object["spec"])
	}
	return nil
}

// labelsOf are the labels that a ConfigMap gets, or why it is refused.
func (f *fixture) labelsOf(ctx context.Context, other string) string {
	marked := newConfigMap("some", nil)
	marked.Labels = map[string]string{"marked": "yes"}
	cm, err := shared.Client.CoreV1().ConfigMaps(other).Create(ctx, marked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(cm.Labels)
}

// oldServer answers the API server as the hooks of an addon-operator do.
type oldServer struct {
	server *httptest.Server
	asked  atomic.Int64
}

func newOldServer(t *testing.T) *oldServer {
	t.Helper()
	s := &oldServer{}
	s.server = httptest.NewTLSServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, _ := review["request"].(map[string]any)
	answer := map[string]any{"uid": request["uid"], "allowed": true}
	switch r.URL.Path {
	case "/hooks/guard-example-com":
		answer["allowed"], answer["status"] = false, map[string]any{"message": "the guard says no"}
	case "/hooks/mark-example-com":
		answer["patchType"] = "JSONPatch"
		answer["patch"] = base64.StdEncoding.EncodeToString([]byte(`[{"op": "add", "path": "/metadata/labels/by-old", "value": "yes"}]`))
	default:
		objects, _ := request["objects"].([]any)
		for _, e := range objects {
			o := &unstructured.Unstructured{Object: e.(map[string]any)}
			spec, _ := o.Object["spec"].(map[string]any)
			for from, to := range map[string]string{"hue": "colour", "colour": "hue"} {
				if strings.HasSuffix(fmt.Sprint(request["desiredAPIVersion"]), "/v1") == (to == "hue") && spec[from] != nil {
					spec[to] = spec[from]
					delete(spec, from)
				}
			}
			o.SetAPIVersion(fmt.Sprint(request["desiredAPIVersion"]))
		}
		answer["convertedObjects"], answer["result"] = objects, map[string]any{"status": "Success"}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer})
}

// bundle is the authority of its certificate, which is the certificate itself.
func (s *oldServer) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// waitQuiet waits until the API server asks it no more.
func (s *oldServer) waitQuiet(f *fixture, other string) {
	f.t.Helper()
	f.eventually("nobody asks addon-operator", func() error {
		before := s.asked.Load()
		for range 5 { // the API server learns of changes one by one
			if err := f.covered(f.t.Context(), other); err != nil {
				return err
			}
		}
		if n := s.asked.Load() - before; n > 0 {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
}

// oldDefinition is a definition that the server converts, and a lamp of it.
func (f *fixture) oldDefinition(s *oldServer) string {
	f.t.Helper()
	name := "lamps." + f.ns + ".example.com"
	text := ""
	for line := range strings.Lines(strings.ReplaceAll(versionedLamps("v1"), "$NS", f.ns)) {
		if !strings.Contains(line, "v1beta1") { // the hook knows two versions
			text += line
		}
	}
	text = strings.Replace(text, "conversion: {strategy: None}", fmt.Sprintf("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %q}}}",
		s.server.URL+"/versions", base64.StdEncoding.EncodeToString(s.bundle())), 1)
	shared.Apply(f.t, text)
	f.t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	f.eventually("a lamp", func() error {
		_, err := f.lamps("v1").Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": f.ns + ".example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"hue": "red"},
		}}, metav1.CreateOptions{})
		return err
	})
	return name
}

// oldConfigurations are those that addon-operator has registered: one object of each kind, with all hooks. Their
// name is that of VALIDATING_WEBHOOK_CONFIGURATION_NAME, and "-hooks".
func (f *fixture) oldConfigurations(s *oldServer) (name string) {
	f.t.Helper()
	name = "shell-operator-" + f.ns + "-hooks"
	fail, none, namespaced := admissionv1.Fail, admissionv1.SideEffectClassNone, admissionv1.NamespacedScope
	where := &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": f.ns}}
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &namespaced},
	}}
	at := func(path string) admissionv1.WebhookClientConfig {
		url := s.server.URL + path
		return admissionv1.WebhookClientConfig{URL: &url, CABundle: s.bundle()}
	}
	label := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}
	}
	api, meta := shared.Client.AdmissionregistrationV1(), metav1.ObjectMeta{Name: name}
	_, err1 := api.ValidatingWebhookConfigurations().Create(f.t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "guard.example.com", ClientConfig: at("/hooks/guard-example-com"), FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: where, ObjectSelector: label("guarded"), Rules: rules,
	}}}, metav1.CreateOptions{})
	_, err2 := api.MutatingWebhookConfigurations().Create(f.t.Context(), &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{
		Name: "mark.example.com", ClientConfig: at("/hooks/mark-example-com"), FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: where, ObjectSelector: label("marked"), Rules: rules,
	}}}, metav1.CreateOptions{})
	if err1 != nil || err2 != nil {
		f.t.Fatal(err1, err2)
	}
	f.t.Cleanup(func() { // deleted by the test, as a rule
		_ = api.ValidatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = api.MutatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	return name
}

// service leads to one process after the other, as a Service does.
type service struct {
	ln     net.Listener
	target atomic.Pointer[string]
}

func newService(t *testing.T) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{ln: ln}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go s.carry(conn)
		}
	}()
	return s
}

// to leads new connections to the address of --webhook-address.
func (s *service) to(flag string) {
	address := strings.TrimPrefix(flag, "--webhook-address=")
	s.target.Store(&address)
}

func (s *service) url() string { return "--webhook-url=https://" + s.ln.Addr().String() }

func (s *service) carry(conn net.Conn) {
	defer conn.Close()
	to, err := net.Dial("tcp", *s.target.Load())
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.Close()
	}()
	_, _ = io.Copy(conn, to)
}

// executable makes all hooks of a tree executable.
func executable(tree string) error {
	return exec.Command("find", filepath.Clean(tree), "-name", "*.sh", "-exec", "chmod", "+x", "{}", "+").Run()
}
