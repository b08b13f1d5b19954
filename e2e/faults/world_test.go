package faults

import (
	"context"
	"errors"
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
)

// setting says what is special about a world.
type setting struct {
	replicas int               // 0: one
	tree     map[string]string // by path, with "$NS" for the namespace; nil: [tree]
	on       *cluster.Cluster  // nil: the shared one
	access   cluster.Access    // without any: all rights
	args     []string          // more flags of run
}

// world is an instance that works on a tree behind a proxy, and what there is for it to do.
type world struct {
	t        *testing.T
	cluster  *cluster.Cluster
	ns       string
	modules  string
	proxy    *proxy.Proxy
	direct   string // the kubeconfig that does not go by the proxy
	kube     string // the one that does
	replicas []*replica
	dice     *rand.Rand // of what users do
	checks   []func() error
	note     proxy.Striker // sees each write; nil: nobody does

	stamps int
	inputs map[string]string // what each should show
	shops  map[string]int
	closed map[string]bool // shops that were deleted

	mu   sync.Mutex
	made map[string][]string // by name of a shop: the uids of its Secrets
}

// newWorld makes a world in which nothing runs yet: see [world.begin] and [world.start].
func newWorld(t *testing.T, settings ...setting) *world {
	t.Helper()
	var s setting
	if len(settings) > 0 {
		s = settings[0]
	}
	if s.on == nil {
		s.on = shared
	}
	w := &world{
		t: t, cluster: s.on, ns: s.on.Namespace(t), modules: t.TempDir(), dice: rand.New(rand.NewPCG(seed, 1)),
		inputs: map[string]string{}, shops: map[string]int{}, closed: map[string]bool{}, made: map[string][]string{},
	}
	w.checks = []func() error{w.releases, w.calm}
	if s.tree == nil {
		s.tree = tree
		w.checks = append([]func() error{w.mirrored, w.children}, w.checks...)
	}
	w.write(s.tree)
	t.Cleanup(func() {
		crds := w.cluster.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		_ = crds.Delete(context.Background(), "shops."+w.ns+".example.net", metav1.DeleteOptions{})
	})
	if len(s.access.Cluster)+len(s.access.Namespaced)+len(s.access.ClusterRoles) == 0 {
		s.access.ClusterRoles = []string{"cluster-admin"}
	}
	w.direct = w.cluster.ServiceAccountKubeconfig(t, w.ns, "starling", s.access)
	w.proxy, w.kube = proxy.New(t, w.direct, seed)
	for range max(1, s.replicas) {
		w.replicas = append(w.replicas, &replica{world: w, kube: w.kube, args: s.args})
	}
	t.Cleanup(func() { t.Logf("%s; Starling was started %d times", w.proxy.Told(), w.starts()) })
	w.observe()
	w.inject()
	return w
}

// write puts files into the tree, one after the other; "" removes a file or folder.
func (w *world) write(files map[string]string) {
	w.t.Helper()
	w.done(w.writeInto(w.modules, files))
}

// writeInto does so with the tree in a folder.
func (w *world) writeInto(folder string, files map[string]string) (err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(folder, name)
		if files[name] == "" {
			err = errors.Join(err, os.RemoveAll(file))
			continue
		}
		text := strings.ReplaceAll(files[name], "$NS", w.ns)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file+".new", []byte(text), 0o644), os.Rename(file+".new", file))
	}
	return err
}

// inject puts faults in force, also for watches that are open.
func (w *world) inject(faults ...proxy.Fault) {
	// It counts alone.
	writes := proxy.Fault{Name: "writes", On: proxy.But(proxy.Writes, proxy.Leases),
		Strike: func(rw http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) { next.ServeHTTP(rw, r) }}
	all := append([]proxy.Fault{writes}, faults...)
	if w.note != nil {
		all = append(all, proxy.Fault{Name: "noted", On: proxy.Writes, Strike: w.note})
	}
	w.proxy.Inject(all...)
	w.proxy.Cut(proxy.Watches)
}

// observe notes each Secret that is made for a shop.
func (w *world) observe() {
	w.t.Helper()
	secrets, ctx := w.cluster.Client.CoreV1().Secrets(w.ns), w.t.Context()
	note := func(s *corev1.Secret) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if name := s.Labels["shop"]; !slices.Contains(w.made[name], string(s.UID)) {
			w.made[name] = append(w.made[name], string(s.UID))
		}
	}
	// list returns the version from which a watch goes on.
	list := func() (string, error) {
		now, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "shop"})
		if err != nil {
			return "", err
		}
		for _, s := range now.Items {
			note(&s)
		}
		return now.ResourceVersion, nil
	}
	version, err := list()
	w.done(err)
	go func() {
		for ctx.Err() == nil {
			seen, err := secrets.Watch(ctx, metav1.ListOptions{LabelSelector: "shop", ResourceVersion: version})
			if err == nil {
				for e := range seen.ResultChan() {
					if s, is := e.Object.(*corev1.Secret); is {
						version = s.ResourceVersion
						note(s)
					} else { // the version is too old
						version = ""
					}
				}
			}
			for version == "" && ctx.Err() == nil {
				time.Sleep(100 * time.Millisecond)
				version, _ = list()
			}
			if err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
}

// done ends the test at an error.
func (w *world) done(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
