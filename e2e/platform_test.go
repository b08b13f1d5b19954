package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// platformRole is what the modules of e2e/platform need.
var platformRole = webhookRole(least{
	Anywhere: []rbacv1.PolicyRule{renders("apps", "daemonsets")},
	Hooks: []rbacv1.PolicyRule{
		watches("", "nodes"), watches("", "namespaces"), watches("platform.example.org", "teamquotas"),
		allow("apiextensions.k8s.io", "customresourcedefinitions", "get", "create", "patch"),
		allow("", "resourcequotas", "get", "list", "create", "patch", "delete"),
		allow("", "secrets", "get", "list", "watch", "create", "patch"),
		allow("", "configmaps", "create", "patch"),
		allow("", "events", "get", "create", "patch"),
	},
})

// The four modules of e2e/platform, as a new user has written them, do what their README
// says, and do it again after a crash.
func TestPlatform(t *testing.T) {
	t.Parallel()
	spaces := []string{"team-quotas", "node-pools", "edge", "status-page"}
	ownNamespaces(t, spaces...)
	for _, name := range spaces {
		if name == "node-pools" {
			continue // Starling makes the namespace of a release
		}
		if _, err := shared.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "teamquotas.platform.example.org", metav1.DeleteOptions{})
	})
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: filepath.Join("platform")}
	f.grant(platformRole)
	page := newPage(t)
	f.configure(map[string]string{"statusPage": "url: http://localhost:" + page.port})
	args := webhookArgs(t)
	f.start(args...)
	for _, m := range []string{"team-quotas", "node-pools", "edge-certificate", "status-page"} {
		f.waitState(m, status.ModuleReady)
	}

	f.checkPage(page)
	f.checkPools()
	f.checkQuotas()
	first := f.waitEdge(nil)

	f.process.Kill()
	f.start(args...)
	f.checkPage(page)
	f.checkPools()
	f.checkQuotas()
	if again := f.waitEdge(nil); !bytes.Equal(again, first) {
		t.Error("a restart makes another certificate")
	}
	if err := shared.Client.CoreV1().Secrets("edge").Delete(t.Context(), "edge-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitEdge(first)
	if up := f.metric("edge_certificate_ends_soon"); up != 0 {
		t.Errorf("edge_certificate_ends_soon is %v", up)
	}
}

// waitEdge waits for another certificate than before, which the bundle of edge-ca is good
// for, and returns it.
func (f *fixture) waitEdge(before []byte) (cert []byte) {
	f.t.Helper()
	f.eventually("the edge has a certificate", func() error {
		s, err := shared.Client.CoreV1().Secrets("edge").Get(f.t.Context(), "edge-tls", metav1.GetOptions{})
		if err != nil {
			return err
		}
		bundle, err := configMap(f.t, "edge", "edge-ca")
		if err != nil {
			return err
		}
		if cert = s.Data["tls.crt"]; bytes.Equal(cert, before) {
			return errors.New("it is the old one")
		}
		return trusts(s, bundle["ca.crt"], "edge.edge.svc")
	})
	return cert
}

// page is a status page that can be down.
type page struct {
	t    *testing.T
	port string
	stop func()
}

func newPage(t *testing.T) *page {
	_, port, _ := net.SplitHostPort(cluster.Address())
	return &page{t: t, port: port}
}

func (p *page) up(answer http.HandlerFunc) {
	ln, err := net.Listen("tcp", "127.0.0.1:"+p.port)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &http.Server{Handler: answer}
	go func() { _ = s.Serve(ln) }()
	p.stop = func() { _ = s.Close() }
	p.t.Cleanup(p.stop)
}

func (f *fixture) checkPage(p *page) {
	f.t.Helper()
	shows := func(want string) {
		f.t.Helper()
		f.eventually("the status is "+want, func() error {
			data, err := configMap(f.t, "status-page", "status")
			if err == nil && data["state"] != want {
				err = fmt.Errorf("it is %q", data["state"])
			}
			return err
		})
	}
	shows("down")
	p.up(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"state": "all well"}`) })
	shows("all well")
	p.stop()
	shows("down")
	p.up(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	shows("broken: status 503")
	p.stop()
	m, err := f.module("status-page")
	if err != nil || m.State != status.ModuleReady {
		f.t.Errorf("a page that is down makes the module %s: %s %v", m.State, m.Reason, err)
	}
}

func (f *fixture) checkPools() {
	f.t.Helper()
	daemons := func(want string) {
		f.t.Helper()
		f.eventually("the DaemonSets are "+want, func() error {
			list, err := shared.Client.AppsV1().DaemonSets("node-pools").List(f.t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			var names []string
			for _, d := range list.Items {
				names = append(names, d.Name)
			}
			if got := strings.Join(names, " "); got != want {
				return fmt.Errorf("they are %q", got)
			}
			return nil
		})
	}
	node := func(name, pool string) {
		f.t.Helper()
		shared.AddNode(f.t, name, map[string]string{"platform.example.org/pool": pool})
	}
	gone := func(name string) {
		f.t.Helper()
		if err := shared.Client.CoreV1().Nodes().Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
	node("platform-a", "web")
	node("platform-b", "web")
	node("platform-c", "batch")
	daemons("agent-batch agent-web")
	gone("platform-c")
	daemons("agent-web")
	gone("platform-a")
	gone("platform-b")
	daemons("")
}

func (f *fixture) checkQuotas() {
	f.t.Helper()
	ctx := f.t.Context()
	quotas := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "platform.example.org", Version: "v1", Resource: "teamquotas"})
	teamQuota := func(name, team, pods string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "platform.example.org/v1", "kind": "TeamQuota", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"team": team, "hard": map[string]any{"pods": pods}},
		}}
	}
	team := "t" + shared.Namespace(f.t)
	ns := shared.Namespace(f.t)
	patch(f.t, "namespaces", "", ns, map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": team}}})
	f.eventually("a TeamQuota that is none is refused", func() error {
		_, err := quotas.Create(ctx, teamQuota(team, team, "ten"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), `pods: "ten" is no quantity`) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if _, err := quotas.Create(ctx, teamQuota(team, team, "10"), metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("the namespace has the quota", func() error {
		q, err := shared.Client.CoreV1().ResourceQuotas(ns).Get(ctx, "team", metav1.GetOptions{})
		if err == nil && q.Spec.Hard.Pods().String() != "10" {
			err = fmt.Errorf("it is %s", q.Spec.Hard.Pods())
		}
		return err
	})
	f.eventually("a second TeamQuota of the team is refused", func() error {
		_, err := quotas.Create(ctx, teamQuota(team+"-b", team, "1"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "has the TeamQuota "+team) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	if err := quotas.Delete(ctx, team, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("the quota goes with its TeamQuota", func() error {
		_, err := shared.Client.CoreV1().ResourceQuotas(ns).Get(ctx, "team", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}
