package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Starling is killed at each write in the life of a parent: as its children are made, changed, made anew,
// one after the other where they roll, and deleted, before the write reaches the API server or before its
// answer is here. The next process leads to the same end with the same objects, none of which was made twice,
// and nothing is left of a parent that is gone, but for the child that is retained.
func TestKilledInTheLifeOfAParent(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledInTheLifeOfAParent(t, after)
		})
	}
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	quotas      = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	templates   = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
	ingresses   = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
)

// family has a PodTemplate as the parent of the children of examples/application, of one in another namespace, of
// one that is made anew for a change, of one that is retained, of one that is wanted at times, and of two that
// come to a new state one by one. It sets a field of a ConfigMap that somebody else has made. While the
// others go it keeps a backup.
const family = `
def child(api_version, kind, o, suffix, **fields):
    meta = {"name": o.metadata.name + suffix, "labels": {"port": o.template.metadata.labels.port}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta} | fields

def family(ctx, o):
    name, port = o.metadata.name, int(o.template.metadata.labels.port)
    selector = {"app": name}
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}]
    containers = [{"name": "web", "image": "nginx:%d" % port, "env": env}]
    backend = {"service": {"name": name, "port": {"number": port}}}
    rules = [{"host": name + ".example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    far = child("v1", "ConfigMap", o, "-far")
    far["metadata"]["namespace"] = "$FAR"

    parts = [
        part(child("v1", "Secret", o, ""), name = "password", fill = {"data.password": generate.password()}),
        part(name = "web", obj = child("apps/v1", "Deployment", o, "", spec = {
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": {"containers": containers}},
        })),
        part(child("v1", "Service", o, "", spec = {"selector": selector, "ports": [{"port": port}]}), name = "service"),
        part(child("networking.k8s.io/v1", "Ingress", o, "", spec = {"rules": rules}), after = ["web", "service"]),
        part(child("v1", "ResourceQuota", o, "", spec = {"hard": {"count/jobs.batch": str(port)}}), name = "quota", ready = "exists"),
        part(far, after = ["quota"]),
        part(child("v1", "ConfigMap", o, "-anew", immutable = True, data = {"port": str(port)}), update = "recreate"),
        part(child("v1", "ConfigMap", o, "-kept"), retain = True),
        rolling([part(child("v1", "ServiceAccount", o, "-%d" % i)) for i in range(2)]),
        set_fields({"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs"}, {"data": {"port": str(port)}}),
    ]
    return parts + [part(child("v1", "ConfigMap", o, "-odd")) for _ in range(port % 2)]

def cleanup(ctx, o):
    names = [c.name for c in ctx.children if c.name != o.metadata.name + "-kept"]
    if not names:
        fail("it is asked again")
    return [part(child("v1", "ConfigMap", o, "-backup"))] if names != [o.metadata.name + "-backup"] else None

controller("family", k8s.watch("v1", "PodTemplate", namespaces = ["$NS"], labels = {"family": "true"}), family, cleanup = cleanup,
           owns = [owns("v1", "Secret"), owns("apps/v1", "Deployment"), owns("v1", "Service"), owns("networking.k8s.io/v1", "Ingress"),
                   owns("v1", "ResourceQuota"), owns("v1", "ConfigMap"), owns("v1", "ServiceAccount"), owns("v1", "ConfigMap", fields = True)])
`

func testKilledInTheLifeOfAParent(t *testing.T, after bool) {
	ns, far := shared.Namespace(t), shared.Namespace(t)
	f := &fixture{t: t, ns: ns, name: "starling", modules: t.TempDir()}
	f.write(map[string]string{"family/module.star": "module(enabled = True, grants = [grant(\"v1\", \"PodTemplate\", verbs = [\"finalize\"])])\n", "family/hooks/family.star": strings.ReplaceAll(family, "$FAR", far)})
	f.grantPrinted()
	r := newKiller(t, f, nil)
	f.start()
	f.waitReady()
	l := &life{t: t, ns: ns, far: far, killer: r, fresh: map[string]map[string]any{}, arrivals: watchArrivals(t, []string{ns, far}, families...)}
	shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: %s}\ndata: {own: \"1\"}\n", ns))
	phases := []struct {
		change func()
		ends   func() error
		known  map[string]bool // writes at which a process was killed
	}{
		{func() { l.begin(1) }, func() error { return l.follows(1) }, map[string]bool{}},
		{func() { l.begin(2) }, func() error { return l.follows(2) }, map[string]bool{}},
		{l.remove, l.gone, map[string]bool{}},
	}
	for _, phase := range phases { // nobody is killed: so it should always end
		r.KillAt(0, after, phase.change)
		f.eventually("the change is carried out", phase.ends)
	}
	for killed := true; killed; {
		killed = false
		for _, phase := range phases {
			before := r.KillNew(phase.known, after, phase.change)
			f.eventually("the change is carried out, or the process is killed", func() error {
				if r.Killed() > before {
					return nil
				}
				return phase.ends()
			})
			if r.Spare() > before {
				killed = true
				f.process.Kill()
				f.freeLease()
				f.start()
				f.waitReady()
			}
			f.eventually("the change is carried out", phase.ends)
		}
	}
	at := r.At()
	slices.Sort(at)
	t.Logf("killed %d times, at %q", len(at), at)
	for _, write := range l.writes() {
		if !slices.Contains(at, write) {
			t.Errorf("no process was killed at %s", write)
		}
	}
}

var families = []schema.GroupVersionResource{configMaps, quotas, services, accounts, secrets, deployments, ingresses, templates}

// life is that of one parent after the other, all with the same name.
type life struct {
	t        *testing.T
	ns, far  string
	killer   *proxy.Killer
	arrivals *arrivals
	before   map[string]int            // how often each child was made when the phase began
	fresh    map[string]map[string]any // how phases end when nobody is killed
}

// children are the names of those of a parent with this port, by their kinds; some are in the namespace far.
func (l *life) children(port int) map[schema.GroupVersionResource][]string {
	cms := []string{"p-anew", "p-far", "p-kept"}
	if port%2 == 1 {
		cms = append(cms, "p-odd")
	}
	return map[schema.GroupVersionResource][]string{
		configMaps: cms, secrets: {"p"}, deployments: {"p"}, services: {"p"}, ingresses: {"p"}, quotas: {"p"}, accounts: {"p-0", "p-1"},
	}
}

func (l *life) namespace(name string) string {
	if name == "p-far" {
		return l.far
	}
	return l.ns
}

// writes are those at which a process has to be killed.
func (l *life) writes() []string {
	out := []string{"PATCH configmaps/theirs", "PATCH podtemplates/p", "PATCH configmaps/p-backup", "DELETE configmaps/p-backup"}
	for kind, names := range l.children(1) {
		for _, name := range names {
			out = append(out, "PATCH "+kind.Resource+"/"+name)
			if name != "p-kept" {
				out = append(out, "DELETE "+kind.Resource+"/"+name)
			}
		}
	}
	return out
}

// begin makes the parent, or changes it.
func (l *life) begin(port int) {
	l.t.Helper()
	l.before = l.arrivals.sofar()
	if port == 1 { // the one before has left it
		if err := shared.Client.CoreV1().ConfigMaps(l.ns).Delete(l.t.Context(), "p-kept", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
	}
	shared.Apply(l.t, fmt.Sprintf(`
apiVersion: v1
kind: PodTemplate
metadata: {name: p, namespace: %s, labels: {family: "true"}}
template: {metadata: {labels: {port: "%d"}}, spec: {containers: [{name: web, image: nginx}]}}
`, l.ns, port))
}

func (l *life) remove() {
	l.t.Helper()
	l.before = l.arrivals.sofar()
	if err := shared.Dynamic.Resource(templates).Namespace(l.ns).Delete(l.t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// follows is nil when the children are as those of a parent with this port, and nothing is written any more.
func (l *life) follows(port int) error {
	found := map[string]any{}
	for kind, names := range l.children(port) {
		for _, name := range names {
			ns := l.namespace(name)
			o, err := shared.Dynamic.Resource(kind).Namespace(ns).Get(l.t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if o.GetLabels()["port"] != fmt.Sprint(port) {
				return fmt.Errorf("%s %s has the labels %v", kind.Resource, name, o.GetLabels())
			}
			if owned := len(o.GetOwnerReferences()) == 1; owned != (name != "p-far" && name != "p-kept") {
				l.t.Fatalf("the owners of %s %s are %v", kind.Resource, name, o.GetOwnerReferences())
			}
			key := arrivalKey(kind, ns, name)
			want := l.before[key]
			if port == 1 || name == "p-anew" {
				want++
			}
			twice, err := l.arrivals.check(key, o.GetUID(), want)
			if err != nil {
				return err
			}
			if twice {
				l.t.Fatalf("%s was made twice: %v, with the passwords %q", key, l.arrivals.made[key], l.arrivals.passwords[key])
			}
			found[key] = likeness(o)
		}
	}
	if err := errors.Join(l.onlyThese(l.children(port), "p"), l.theirs(fmt.Sprint(port)), l.killer.Rests(300*time.Millisecond)); err != nil {
		return err
	}
	return l.same(fmt.Sprint(port), found)
}

// gone is nil when nothing is left but the child that is retained.
func (l *life) gone() error {
	if err := l.onlyThese(map[schema.GroupVersionResource][]string{configMaps: {"p-kept"}}, ""); err != nil {
		return err
	}
	backup := arrivalKey(configMaps, l.ns, "p-backup")
	switch made := l.arrivals.sofar()[backup] - l.before[backup]; {
	case made == 0:
		return errors.New("no backup was made yet")
	case made > 1:
		l.t.Fatalf("%d backups were made", made)
	}
	o, err := shared.Dynamic.Resource(configMaps).Namespace(l.ns).Get(l.t.Context(), "p-kept", metav1.GetOptions{})
	if err != nil {
		return err
	}
	kept := arrivalKey(configMaps, l.ns, "p-kept")
	if twice, err := l.arrivals.check(kept, o.GetUID(), l.before[kept]); twice || err != nil {
		l.t.Fatalf("the retained child was made anew: %v", err)
	}
	if err := errors.Join(l.theirs(""), l.killer.Rests(300*time.Millisecond)); err != nil {
		return err
	}
	return l.same("gone", map[string]any{kept: likeness(o)})
}

// onlyThese is nil when these children are there and no others, and the parent, if it has this name.
func (l *life) onlyThese(want map[schema.GroupVersionResource][]string, parent string) error {
	for _, ns := range []string{l.ns, l.far} {
		for _, kind := range families {
			list, err := shared.Dynamic.Resource(kind).Namespace(ns).List(l.t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, o := range list.Items {
				name := o.GetName()
				wanted := kind == templates && name == parent || slices.Contains(want[kind], name) && l.namespace(name) == ns
				if strings.HasPrefix(name, "p") && !wanted {
					return fmt.Errorf("%s %s/%s is there", kind.Resource, ns, name)
				}
			}
		}
	}
	return nil
}

// theirs is nil when the object of somebody else has this port, or none.
func (l *life) theirs(port string) error {
	o, err := shared.Client.CoreV1().ConfigMaps(l.ns).Get(l.t.Context(), "theirs", metav1.GetOptions{})
	if err == nil && (o.Data["port"] != port || o.Data["own"] != "1" || (len(o.Annotations) > 0) != (port != "")) {
		err = fmt.Errorf("the object of somebody else has %q and %q", o.Data, o.Annotations)
	}
	return err
}

// same is nil when a phase ends as it does when nobody is killed.
func (l *life) same(phase string, found map[string]any) error {
	fresh, known := l.fresh[phase]
	if !known {
		l.fresh[phase] = found
		return nil
	}
	if !cmp.Equal(fresh, found) {
		return fmt.Errorf("when nobody is killed it differs: %s", cmp.Diff(fresh, found))
	}
	return nil
}

// likeness is a child without what differs from one to the next of the same name.
func likeness(o *unstructured.Unstructured) map[string]any {
	owners, marks := o.GetOwnerReferences(), o.GetAnnotations()
	for i := range owners {
		owners[i].UID = ""
	}
	delete(marks, reconcile.ParentUIDAnnotation)
	delete(marks, effect.ChildSignature)
	delete(marks, "deployment.kubernetes.io/revision") // of another controller, which may be late
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	delete(spec, "clusterIP")
	delete(spec, "clusterIPs")
	data, _, _ := unstructured.NestedMap(o.Object, "data")
	if _, is := data["password"]; is {
		data["password"] = ""
	}
	return map[string]any{
		"labels": o.GetLabels(), "annotations": marks, "owners": owners, "finalizers": o.GetFinalizers(), "spec": spec, "data": data,
		"immutable": o.Object["immutable"],
	}
}
