package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// tree is a hook that writes all inputs into one object, and into the values of a chart, and a controller
// that makes a Secret, once, and a ConfigMap of each Shop.
var tree = map[string]string{
	"mirror/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"], names = ["out"])])
`,
	"mirror/Chart.yaml":  "{apiVersion: v2, name: mirror, version: 0.1.0}\n",
	"mirror/values.yaml": "text: none\n",
	"mirror/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: {{ .Release.Namespace }}}\n" +
		"data:\n  text: {{ .Values.text | quote }}\n",
	"mirror/hooks/mirror.star": `
def mirror(ctx):
    data = {}
    for line in ctx.snapshots["inputs"]:
        name, _, text = line.partition("=")
        data[name] = text
    values.set("text", ",".join(ctx.snapshots["inputs"]))
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out", "namespace": "$NS"}, "data": data})

hook(mirror, on = [startup(), k8s.watch("v1", "ConfigMap", name = "inputs", namespaces = ["$NS"], labels = {"input": "$NS"},
                                        filter = lambda o: o.metadata.name + "=" + o.data["text"])],
     retry = retry(min = "200ms", max = "5s"))
`,
	"shops/module.star": `module(enabled = True)
crd("$NS.example.net/v1", "Shop", {"n": field("integer", default = 1)})
`,
	"shops/hooks/shop.star": `
def shop(ctx, o):
    name = o.metadata.name

    def child(kind, suffix, **fields):
        return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": name + suffix, "labels": {"shop": name}}}, **fields)

    return [
        part(child("Secret", "-key"), name = "key", fill = {"data.key": generate.password()}),
        part(child("ConfigMap", "-n", data = {"n": str(o.spec.n)}), name = "n", after = ["key"]),
    ]

controller("shop", k8s.watch("$NS.example.net/v1", "Shop", namespaces = ["$NS"]), shop,
           owns = [owns("v1", "Secret"), owns("v1", "ConfigMap")])
`,
}

// world is an instance that works on [tree] behind a proxy, and what there is for it to do.
type world struct {
	t       *testing.T
	ns      string
	modules string
	kube    string
	args    []string
	proxy   *proxy.Proxy
	process *cluster.Starling
	starts  int
	started time.Time
	dice    *rand.Rand // of what users do

	stamps int
	inputs map[string]string // what each should show
	shops  map[string]int
	closed map[string]bool // shops that were deleted

	mu   sync.Mutex
	made map[string][]string // by name of a shop: the uids of its Secrets
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, ns: shared.Namespace(t), modules: t.TempDir(), dice: rand.New(rand.NewPCG(seed, 1)),
		inputs: map[string]string{}, shops: map[string]int{}, closed: map[string]bool{}, made: map[string][]string{},
	}
	for name, text := range tree {
		file := filepath.Join(w.modules, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(strings.ReplaceAll(text, "$NS", w.ns)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		crds := shared.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		_ = crds.Delete(context.Background(), "shops."+w.ns+".example.net", metav1.DeleteOptions{})
	})
	kube := shared.ServiceAccountKubeconfig(t, w.ns, "starling", cluster.Access{ClusterRoles: []string{"cluster-admin"}})
	w.proxy, w.kube = proxy.New(t, kube, seed)
	t.Cleanup(func() { t.Logf("%s; Starling was started %d times", w.proxy.Told(), w.starts) })
	w.observe()
	w.inject()
	return w
}

// inject puts faults in force, also for watches that are open.
func (w *world) inject(faults ...proxy.Fault) {
	// It counts alone.
	writes := proxy.Fault{Name: "writes", On: proxy.But(proxy.Writes, proxy.Leases),
		Strike: func(rw http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) { next.ServeHTTP(rw, r) }}
	w.proxy.Inject(append([]proxy.Fault{writes}, faults...)...)
	w.proxy.Cut(proxy.Watches)
}

// observe notes each Secret that is made for a shop.
func (w *world) observe() {
	w.t.Helper()
	ctx, version := w.t.Context(), ""
	look := func() error {
		seen, err := shared.Client.CoreV1().Secrets(w.ns).Watch(ctx, metav1.ListOptions{LabelSelector: "shop", ResourceVersion: version})
		if err != nil {
			return err
		}
		for e := range seen.ResultChan() {
			s, is := e.Object.(*corev1.Secret)
			if !is {
				continue
			}
			version = s.ResourceVersion
			w.mu.Lock()
			if name := s.Labels["shop"]; !slices.Contains(w.made[name], string(s.UID)) {
				w.made[name] = append(w.made[name], string(s.UID))
			}
			w.mu.Unlock()
		}
		return nil
	}
	now, err := shared.Client.CoreV1().Secrets(w.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	version = now.ResourceVersion
	go func() {
		for ctx.Err() == nil {
			if look() != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
}

// start starts the process, or another one in the place of one that has ended, as a kubelet does.
func (w *world) start() {
	w.t.Helper()
	o := cluster.Options{Modules: w.modules, Namespace: w.ns, Kubeconfig: w.kube, Args: w.args}
	if w.process != nil {
		o.StateDir = w.process.StateDir
	}
	w.process = shared.Starling(w.t, o)
	w.starts, w.started = w.starts+1, time.Now()
}

// revive does what a kubelet does, which lets some time pass between two starts.
func (w *world) revive() {
	if !w.process.Alive() && time.Since(w.started) > time.Second {
		w.start()
	}
}

func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	cluster.Eventually(w.t, soon, what, func() error {
		w.revive()
		return check()
	})
}

// status asks the process through its socket.
func (w *world) status() (status.Status, error) {
	return admin.NewClient(admin.ClientOptions{Socket: filepath.Join(w.process.StateDir, "admin", "starling.sock")}).Status(w.t.Context())
}

// done ends the test at an error.
func (w *world) done(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// input makes or changes an input; "" deletes it.
func (w *world) input(name, text string) {
	w.t.Helper()
	cms := shared.Client.CoreV1().ConfigMaps(w.ns)
	_, there := w.inputs[name]
	var err error
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"input": w.ns}}, Data: map[string]string{"text": text}}
	switch {
	case text == "" && !there:
		return
	case text == "":
		err = cms.Delete(w.t.Context(), name, metav1.DeleteOptions{})
		delete(w.inputs, name)
	case there:
		_, err = cms.Update(w.t.Context(), cm, metav1.UpdateOptions{})
		w.inputs[name] = text
	default:
		_, err = cms.Create(w.t.Context(), cm, metav1.CreateOptions{})
		w.inputs[name] = text
	}
	w.done(err)
}

// shop is the client of Shops.
func (w *world) shop() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.ns + ".example.net", Version: "v1", Resource: "shops"}
}

// open makes a new shop, or changes one.
func (w *world) open(name string, n int) {
	w.t.Helper()
	w.shops[name] = n
	shared.Apply(w.t, fmt.Sprintf("{apiVersion: %s.example.net/v1, kind: Shop, metadata: {name: %s, namespace: %s}, spec: {\"n\": %d}}", w.ns, name, w.ns, n))
}

// shut deletes a shop.
func (w *world) shut(name string) {
	w.t.Helper()
	delete(w.shops, name)
	w.closed[name] = true
	w.done(shared.Dynamic.Resource(w.shop()).Namespace(w.ns).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// change does what a user may do.
func (w *world) change() {
	w.t.Helper()
	open := slices.Sorted(maps.Keys(w.shops))
	switch n := w.dice.IntN(10); {
	case n < 5:
		w.input(fmt.Sprint("i", w.dice.IntN(6)), fmt.Sprint("t", w.dice.IntN(1000)))
	case n < 7:
		w.input(fmt.Sprint("i", w.dice.IntN(6)), "")
	case n < 8 && len(open) < 5:
		w.open(fmt.Sprint("s", len(w.shops)+len(w.closed)), w.dice.IntN(9))
	case n < 9 && len(open) > 0:
		w.open(open[w.dice.IntN(len(open))], w.dice.IntN(9))
	case len(open) > 1:
		w.shut(open[w.dice.IntN(len(open))])
	}
}

// changes makes n changes, with a pause of up to 200 ms after each, and does what a kubelet does meanwhile.
func (w *world) changes(n int) {
	w.t.Helper()
	for range n {
		w.change()
		w.revive()
		time.Sleep(time.Duration(w.dice.Int64N(int64(200 * time.Millisecond))))
	}
}

// stamp changes an input, and says how long it took until the hook had written that.
func (w *world) stamp() time.Duration {
	w.t.Helper()
	w.stamps++
	text, began := fmt.Sprint("stamp", w.stamps), time.Now()
	w.input("stamp", text)
	w.eventually("a change is seen", func() error {
		if out := w.data("out"); out["stamp"] != text {
			return fmt.Errorf("%v is seen", out)
		}
		return nil
	})
	return time.Since(began)
}

// data is what a ConfigMap holds.
func (w *world) data(name string) map[string]string {
	cm, err := shared.Client.CoreV1().ConfigMaps(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return cm.Data
}

// begin starts the process and has it do some work without faults.
func (w *world) begin() {
	w.t.Helper()
	w.start()
	w.input("i0", "first")
	for i := range 3 {
		w.open(fmt.Sprint("s", i), i)
	}
	w.settle()
}
