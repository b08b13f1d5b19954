package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/modules/status"
)

// mortal is a module with a workload, whose chart shows what a hook has seen, and what stands in the tree.
var mortal = map[string]string{
	"web/module.star": "module(adopt = True)\n",
	"web/Chart.yaml":  "{apiVersion: v2, name: web, version: 0.1.0}\n",
	"web/values.yaml": "text: none\ntree: \"0\"\n",
	"web/templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {text: {{ .Values.text | quote }}, tree: {{ .Values.tree | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web-{{ if eq .Values.tree "helm" }}helm{{ else }}{{ mod (int .Values.tree) 2 }}{{ end }}, labels: {tree: web}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {there-is-no: such-node}, containers: [{name: web, image: "web:1"}]}
`,
	"web/hooks/a.star": `
def seen(ctx):
    values.set("text", ",".join(ctx.snapshots["inputs"]))

hook(seen, on = [k8s.watch("v1", "ConfigMap", name = "inputs", namespaces = ["$NS"], labels = {"input": "$NS"}, filter = lambda o: o.data["text"])])
`,
}

// Row 6: of two processes the one that leads is killed at each write of an install, an upgrade, a new tree (an object
// of the one before goes), a take-over, a repair, an uninstall and an adoption from Helm, before the write reaches the API server, or before its answer is here. The
// other one ends it, and the workload is never made anew. The short form kills at two writes of each.
func TestKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			if after { // other lots than those of the other life
				m.dice = rand.New(rand.NewPCG(seed, 2))
			}
			m.live(after)
		})
	}
}

// mortals are two processes with a release, and what may kill them.
type mortals struct {
	*world
	killer *proxy.Killer
	loops  int               // all of the life, so far
	want   map[string]string // of the release; nil: it is off
	uid    types.UID         // of its workload
}

func newMortal(t *testing.T) *mortals {
	t.Helper()
	m := &mortals{world: newWorld(t, setting{replicas: 2, tree: mortal}), killer: &proxy.Killer{}}
	for i, r := range m.replicas {
		p := m.proxy
		r.forgets = true
		if i > 0 {
			p, r.kube = proxy.New(t, m.direct, seed)
		}
		p.Inject(m.killer.Fault(r.kill))
	}
	m.start()
	m.eventually("one leads", func() error { _, err := m.status(); return err })
	return m
}

// kill ends the process at once.
func (r *replica) kill() { r.Starling.Kill() }

// live leads the release through its life, until no process has a write at which none was killed yet.
func (m *mortals) live(after bool) {
	m.t.Helper()
	known := map[string]map[string]bool{} // by part
	kills := map[string]int{}
	for killed := true; killed; m.loops++ {
		killed = false
		for _, part := range []struct {
			name   string
			change func()
		}{{"install", m.install}, {"upgrade", m.upgrade}, {"new tree", m.reload}, {"take-over", m.takeOver}, {"repair", m.repair}, {"uninstall", m.uninstall},
			{"adoption", m.adopt}, {"end", m.uninstall}} {
			before := int64(0)
			if m.loops == 0 {
				before = m.killer.KillAt(0, after, part.change)
			} else {
				before = m.killer.KillNew(known[part.name], after, part.change)
			}
			m.eventually(part.name+" is carried out, or the process is killed", func() error {
				if m.killer.Killed() > before {
					return nil
				}
				return m.settled()
			})
			if m.loops == 0 {
				known[part.name], killed = m.spared(m.killer.Keys()), true
			} else if m.killer.Killed() > before {
				m.freeLease()
				kills[part.name]++
				killed = true
			}
			m.killer.Spare()
			m.eventually(part.name+" is carried out", m.settled)
		}
	}
	m.t.Logf("%d loops, killed %v, at %q", m.loops, kills, m.killer.At())
	for part := range known {
		if kills[part] == 0 {
			m.t.Errorf("no process was killed at %s", part)
		}
	}
}

// spared are the writes at which the short form kills nobody: all but two that are drawn.
func (m *mortals) spared(keys []string) map[string]bool {
	spared := map[string]bool{}
	if !long {
		for _, i := range m.dice.Perm(len(keys))[min(2, len(keys)):] {
			spared[keys[i]] = true
		}
	}
	return spared
}

// freeLease does what time does after a crash.
func (m *world) freeLease() {
	m.t.Helper()
	if err := m.cluster.Client.CoordinationV1().Leases(m.ns).Delete(m.t.Context(), "starling", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		m.t.Fatal(err)
	}
}

func (m *mortals) enable(yes bool) {
	m.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "starling"}, Data: map[string]string{"webEnabled": fmt.Sprint(yes)}}
	cms := m.cluster.Client.CoreV1().ConfigMaps(m.ns)
	_, err := cms.Update(m.t.Context(), cm, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = cms.Create(m.t.Context(), cm, metav1.CreateOptions{})
	}
	m.done(err)
}

func (m *mortals) install() {
	m.want, m.uid = map[string]string{"text": strings.Join(slices.Collect(maps.Values(m.inputs)), ","), "tree": fmt.Sprint(m.loops)}, ""
	m.enable(true)
}

func (m *mortals) upgrade() {
	m.want["text"] = fmt.Sprint("upgrade ", m.loops)
	m.input("a", m.want["text"])
}

func (m *mortals) reload() {
	m.want["tree"] = fmt.Sprint(m.loops + 1)
	m.write(map[string]string{"web/values.yaml": fmt.Sprintf("text: none\ntree: %q\n", m.want["tree"])})
}

// takeOver has the process that leads killed by somebody as there is work to do.
func (m *mortals) takeOver() {
	leader, _, err := m.leader()
	m.done(err)
	leader.kill()
	m.want["text"] = fmt.Sprint("take-over ", m.loops)
	m.input("a", m.want["text"])
	m.freeLease()
}

// repair has somebody edit the workload, and delete an object.
func (m *mortals) repair() {
	patch := []byte(`{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "theirs:1"}]}}}}`)
	_, err := m.cluster.Client.AppsV1().Deployments(m.ns).Patch(m.t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	m.done(errors.Join(err, m.cluster.Client.CoreV1().ConfigMaps(m.ns).Delete(m.t.Context(), "web", metav1.DeleteOptions{})))
}

// adopt has Helm install the release, in another state, before its module is on.
func (m *mortals) adopt() {
	m.want = map[string]string{"text": strings.Join(slices.Collect(maps.Values(m.inputs)), ","), "tree": fmt.Sprint(m.loops + 1)}
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &m.cluster.Kubeconfig, &m.ns
	install := action.NewInstall(&action.Configuration{RESTClientGetter: flags, KubeClient: kube.New(flags),
		Releases: storage.Init(driver.NewSecrets(m.cluster.Client.CoreV1().Secrets(m.ns))), Log: func(string, ...any) {}})
	install.ReleaseName, install.Namespace = "web", m.ns
	ch, err := loader.LoadDir(filepath.Join(m.modules, "web"))
	m.done(err)
	_, err = install.RunWithContext(m.t.Context(), ch, map[string]any{"text": "of helm", "tree": "helm"})
	m.done(err)
	d, err := m.cluster.Client.AppsV1().Deployments(m.ns).Get(m.t.Context(), "web", metav1.GetOptions{})
	m.done(err)
	m.uid = d.UID
	m.enable(true)
}

func (m *mortals) uninstall() {
	m.want = nil
	m.enable(false)
}

// settled says what is not yet as it should be, and fails if the workload is another one than before.
func (m *mortals) settled() error {
	d, err := m.cluster.Client.AppsV1().Deployments(m.ns).Get(m.t.Context(), "web", metav1.GetOptions{})
	switch {
	case m.want == nil && err == nil:
		return fmt.Errorf("the workload is there")
	case m.want == nil && apierrors.IsNotFound(err):
	case err != nil && m.uid != "":
		m.t.Fatalf("the workload: %v", err)
	case err != nil:
		return err
	case m.uid == "":
		m.uid = d.UID
	case m.uid != d.UID:
		m.t.Fatal("the workload was made anew")
	}
	trees, err := m.cluster.Client.CoreV1().ConfigMaps(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "tree=web"})
	if err != nil {
		return err
	}
	var left []string
	for _, cm := range trees.Items {
		left = append(left, cm.Name)
	}
	var should []string
	if m.want != nil {
		tree, err := strconv.Atoi(m.want["tree"])
		m.done(err)
		should = []string{fmt.Sprint("web-", tree%2)}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "web:1" {
			return fmt.Errorf("the workload has image %s", image)
		}
	}
	if !slices.Equal(left, should) {
		return fmt.Errorf("there are %q, want %q", left, should)
	}
	have, state := m.data("web"), status.ModuleReady
	if m.want == nil {
		state = status.ModuleOff
	} else if !cmp.Equal(have, m.want) {
		return fmt.Errorf("the release holds %v, want %v", have, m.want)
	}
	st, err := m.status()
	if err != nil {
		return err
	}
	if len(st.Modules) != 1 || st.Modules[0].State != state || !st.Ready {
		return fmt.Errorf("the status is %+v", st)
	}
	records, err := m.cluster.Client.CoreV1().Secrets(m.ns).List(m.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil || m.want == nil && len(records.Items) > 0 {
		return fmt.Errorf("%d records of the release are there, %w", len(records.Items), err)
	}
	if err := m.releases(); err != nil {
		return err
	}
	return m.killer.Rests(300 * time.Millisecond)
}

// Row 6: what a release leaves is kept before a revision without it counts as deployed, as nobody looks at what
// revisions before that one have held: objects whose deletion is refused, and those of a revision that has failed. The
// process is killed between the two, and as the second one is written. The short form has the latter.
func TestKilledAsARevisionIsDeployed(t *testing.T) {
	t.Parallel()
	parts := []string{"refused", "failed"}
	first := map[string]string{}
	for _, part := range parts {
		maps.Copy(first, late(part))
	}
	w := newWorld(t, setting{tree: first})
	w.start()
	r := w.replicas[0]
	sent := func(req *http.Request, method, path, pattern string) bool {
		if req.Method != method || !strings.Contains(req.URL.Path, path) {
			return false
		}
		body, err := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && regexp.MustCompile(pattern).Match(body)
	}
	refuse := proxy.Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "not today", 0)
	refusals := []proxy.Fault{
		{Name: "no deletion", Strike: refuse, On: func(req *http.Request) bool { return sent(req, "DELETE", "/configmaps/refused-left", "") }},
		{Name: "no creation", Strike: refuse, On: func(req *http.Request) bool { return sent(req, "PATCH", "/configmaps/failed-never", "") }},
	}
	for _, written := range []bool{true, false} {
		for _, part := range parts {
			w.state(part, status.ModuleReady)
			more := map[string]string{}
			for _, name := range []string{part + "-left", part + "-never"} {
				more[part+"/templates/"+name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
			}
			w.inject(refusals...)
			w.write(more)
			w.eventually("its revision has ended", func() error {
				if part == "failed" {
					return w.is(part, status.ModuleFailed)
				} else if !w.there(part + "-never") {
					return errors.New("it has not begun")
				}
				return errors.Join(w.releases(), w.is(part, status.ModuleReady))
			})
			if !w.there(part + "-left") {
				t.Fatal(part, "-left is not made")
			}
			killed := make(chan struct{})
			die := sync.OnceFunc(func() { r.kill(); close(killed) })
			w.inject(append(refusals, proxy.Fault{Name: "deployed", On: func(req *http.Request) bool {
				return sent(req, "PUT", "/secrets/sh.helm.release.v1."+part+".", `status\W+deployed`)
			},
				Strike: func(_ http.ResponseWriter, req *http.Request, next http.Handler, _ *rand.Rand) {
					if written {
						next.ServeHTTP(httptest.NewRecorder(), req)
					}
					die()
					panic(http.ErrAbortHandler)
				}})...)
			for file := range more {
				more[file] = ""
			}
			w.write(more)
			select {
			case <-killed:
			case <-time.After(soon):
				t.Fatal(part, ": no revision is deployed")
			}
			if err := w.releases(); !w.there(part+"-left") || err == nil { // two are deployed, or one is pending
				t.Fatalf("%s-left is there when the process is killed: %t; %v", part, w.there(part+"-left"), err)
			}
			w.inject()
			w.freeLease()
			w.eventually(part+"-left is deleted", func() error {
				if w.there(part + "-left") {
					return errors.New("it is there")
				}
				return errors.Join(w.releases(), w.is(part, status.ModuleReady))
			})
		}
		if !long {
			break
		}
	}
}
