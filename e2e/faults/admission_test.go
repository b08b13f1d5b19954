package faults

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// guarded is [tree] with a module whose hook, release and children are about objects that a policy of somebody
// else looks at.
func guarded() map[string]string {
	files := maps.Clone(tree)
	maps.Copy(files, map[string]string{
		"guarded/module.star":       "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], names = [\"guarded-hook\"])])\n",
		"guarded/Chart.yaml":        "{apiVersion: v2, name: guarded, version: 0.1.0}\n",
		"guarded/values.yaml":       "text: none\n",
		"guarded/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guarded-chart, labels: {guarded: \"yes\"}}\ndata: {text: {{ .Values.text | quote }}}\n",
		"guarded/hooks/a.star": `
def copied(ctx):
    text = ",".join(ctx.snapshots["guards"])
    values.set("text", text)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guarded-hook", "labels": {"guarded": "yes"}}, "data": {"text": text}})

hook(copied, on = [startup(), k8s.watch("v1", "ConfigMap", name = "guards", namespaces = ["$NS"], labels = {"input": "$NS"},
                                        filter = lambda o: o.data["text"] if o.metadata.name == "guard" else None)],
     retry = retry(min = "200ms", max = "5s"))
`,
	})
	return files
}

// policy is a webhook of somebody else, and what is wrong with it.
type policy struct {
	name    string
	one     int64 // it denies one in so many
	late    time.Duration
	broken  bool   // nobody knows its authority
	says    string // what the status tells of it; "": it is right in the end
	refuses bool   // nothing gets through
}

func policies() []policy {
	return []policy{
		{name: "slow", late: 1500 * time.Millisecond},
		{name: "too slow", late: 10 * time.Second, says: `failed calling webhook "policy.example.org"`, refuses: true},
		{name: "denies one in two", one: 2, says: "the moon is full"},
		{name: "denies each", one: 1, says: "the moon is full", refuses: true},
		{name: "breaks TLS", broken: true, says: "x509", refuses: true},
	}
}

// Row 8: a webhook of somebody else is slow, denies, or breaks TLS. The module whose objects it looks at says so,
// the others go on, and all is done once the webhook is in order.
func TestWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{tree: guarded()})
	w.checks = append(w.checks, w.mirrored, w.children, func() error {
		for _, name := range []string{"guarded-hook", "guarded-chart"} {
			if got := w.data(name)["text"]; got != w.inputs["guard"] {
				return fmt.Errorf("%s holds %q, want %q", name, got, w.inputs["guard"])
			}
		}
		return nil
	})
	w.input("guard", "first")
	w.begin()
	for round := range rounds {
		for i, p := range policies() {
			stop := w.register(p)
			began := time.Now()
			w.input("guard", fmt.Sprint("round ", round, " of policy ", i))
			var unseen, saw time.Duration
			for told := false; !told || long && time.Since(began) < 10*time.Second; {
				unseen = max(unseen, w.stamp())
				w.changes(2)
				if !told && w.told(p.says) {
					told, saw = true, time.Since(began)
				}
				if !told && !p.refuses && w.data("guarded-chart")["text"] == w.inputs["guard"] && w.calm() == nil { // it had luck
					w.input("guard", fmt.Sprint("round ", round, " of policy ", i, " after ", w.stamps))
				}
				if time.Since(began) > soon {
					st, _ := w.status()
					t.Fatalf("%s: the status does not tell: %+v", p.name, st)
				}
			}
			stop()
			healed := w.settle()
			t.Logf("round %d, %s: told of within %s, a change of another module was unseen for %s at most; all was as it should be %s later",
				round, p.name, saw.Round(time.Millisecond), unseen.Round(time.Millisecond), healed.Round(time.Millisecond))
			if long && unseen > mostUnseen {
				t.Errorf("%s: a change of another module was unseen for %s", p.name, unseen)
			}
		}
	}
}

// told says whether the status of the module that is guarded, or of its hook, holds a text, and that all others are
// well.
func (w *world) told(text string) (told bool) {
	w.t.Helper()
	st, err := w.status()
	if err != nil {
		return false
	}
	for _, m := range st.Modules {
		if m.Name == "guarded" {
			told = told || strings.Contains(m.LastError+m.Reason, text)
		} else if m.State == status.ModuleFailed {
			w.t.Errorf("module %s is %s: %s", m.Name, m.State, m.LastError)
		}
	}
	for _, h := range st.Hooks {
		if h.Module == "guarded" {
			told = told || strings.Contains(h.LastError, text)
		}
	}
	return told
}

// register has a webhook look at objects with the label guarded, and returns what ends that.
func (w *world) register(p policy) (stop func()) {
	w.t.Helper()
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		select {
		case <-time.After(p.late):
		case <-r.Context().Done():
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: p.one == 0 || asked.Add(1)%p.one != 0}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Message: "the moon is full", Code: http.StatusForbidden}
		}
		_ = json.NewEncoder(rw).Encode(review)
	}))
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if p.broken {
		bundle = w.cluster.Config.CAData
	}
	configurations := w.cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	made, err := configurations.Create(w.t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              "policy.example.org",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: bundle},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: new(int32(3)),
		}},
	}, metav1.CreateOptions{})
	w.done(err)
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		if err := configurations.Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			w.t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	}
	w.t.Cleanup(stop)
	return stop
}
