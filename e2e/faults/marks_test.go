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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/modules/status"
)

// unmarked is for how long nothing is made while the mark cannot be written. Without an order it was there after some
// ten milliseconds.
const unmarked = 700 * time.Millisecond

// mark is something that the next process goes by.
type mark struct {
	name string
	kept string // begins the name of the object that keeps it
	// change has it written; made says whether the thing that it protects is there.
	change func()
	made   func() bool
	// undo comes between the two processes; nil: nothing does.
	undo func()
	// want says what is not yet as it has to be in the next one; written: the first one was killed after the write.
	want func(written bool) error
}

// marks are a process whose tree grows, and its listeners.
type marks struct {
	*world
	listener *httptest.Server
	reviewed string // a namespace of which a hook is asked about each change

	mu    sync.Mutex
	heard []string
}

func newMarks(t *testing.T) *marks {
	t.Helper()
	m := &marks{}
	m.listener = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.heard = append(m.heard, string(text))
	}))
	t.Cleanup(m.listener.Close)
	first := late("first")
	first["web/module.star"] = "module()\n"
	maps.Copy(first, chartOf("web"))
	address := cluster.Address()
	m.world = newWorld(t, setting{tree: first, args: []string{"--webhook-address=" + address, "--webhook-url=https://" + address}})
	m.reviewed = m.cluster.Namespace(t)
	_, err := m.cluster.Client.CoreV1().Namespaces().Patch(t.Context(), m.reviewed, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"reviewed":%q}}}`, m.ns), metav1.PatchOptions{})
	m.done(err)
	m.start()
	m.state("first", status.ModuleReady)
	return m
}

// chartOf is a chart with a ConfigMap of this name.
func chartOf(name string) map[string]string {
	files := late(name)
	delete(files, name+"/module.star")
	return files
}

// there says whether there is a ConfigMap.
func (w *world) there(name string) bool {
	_, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// says is how often the listener has heard a text.
func (m *marks) says(text string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, heard := range m.heard {
		if heard == text {
			n++
		}
	}
	return n
}

// is says what a module is, unless it is what it should be.
func (w *world) is(name string, want status.ModuleState) error {
	st, err := w.status()
	if err != nil {
		return err
	}
	for _, module := range st.Modules {
		if module.Name == name && module.State == want {
			return nil
		}
	}
	return fmt.Errorf("%s is not %s: %+v", name, want, st.Modules)
}

func (w *world) state(name string, want status.ModuleState) {
	w.t.Helper()
	cluster.Eventually(w.t, soon, name+" is "+string(want), func() error { return w.is(name, want) })
}

// hooked is a module with a hook of this body.
func hooked(name, body string) map[string]string {
	return map[string]string{
		name + "/module.star": `module(enabled = True, http = ["127.0.0.1"], grants = [
    grant("v1", "ConfigMap", verbs = ["apply", "get", "list", "delete", "finalize"])])` + "\n",
		name + "/hooks/a.star": body,
	}
}

// applied is an object of a hook, as Starlark.
func applied(name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": "$NS"}}`, name)
}

// registered is the list of what the API server is told to ask.
func (m *marks) registered() []string {
	list, err := m.cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(m.t.Context(),
		metav1.ListOptions{LabelSelector: "starling.dev/instance=" + m.ns + ".starling"})
	m.done(err)
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Name)
	}
	return out
}

// reviews begins again with a hook that reviews, and with no authority.
func (m *marks) reviews() {
	m.replicas[0].Kill()
	if err := m.cluster.Client.CoreV1().Secrets(m.ns).Delete(m.t.Context(), "starling-webhooks", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		m.done(err)
	}
	for _, name := range m.registered() {
		m.done(m.cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(m.t.Context(), name, metav1.DeleteOptions{}))
	}
	m.write(hooked("guard", `hook(lambda ctx: deny("no entry"), name = "guard", on = [k8s.validate("v1", "ConfigMap", ["CREATE"], failure_policy = "ignore",
    namespace_labels = {"reviewed": "$NS"})])
`))
	m.freeLease()
	m.replicas[0].start()
}

// denies says that the API server does not ask the hook, or does not believe it.
func (m *marks) denies(bool) error {
	_, err := m.cluster.Client.CoreV1().ConfigMaps(m.reviewed).Create(m.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "any"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), "no entry") {
		return fmt.Errorf("it is not denied: %v", err)
	}
	if len(m.registered()) == 0 {
		m.t.Fatal("it is denied, and nothing is registered")
	}
	return nil
}

// marks lists them; id tells the modules of one round from those of others.
func (m *marks) marks(id string) []mark {
	name := func(kind string) string { return kind + "-" + id }
	grow := func(files map[string]string) func() { return func() { m.write(files) } }
	ready := func(module string) func(bool) error {
		return func(bool) error { return m.is(module, status.ModuleReady) }
	}
	made := func(name string) func() bool { return func() bool { return m.there(name) } }
	exists := func(name string) func(bool) error {
		return func(bool) error {
			if !m.there(name) {
				return errors.New(name + " is not there")
			}
			return nil
		}
	}
	config := m.cluster.Client.CoreV1().ConfigMaps(m.ns)
	after := late(name("after"))
	after[name("after")+"/module.star"] = "module(enabled = True, after = [\"first\"])\n"
	valued := hooked(name("valued"), "def run(ctx):\n    values.set(\"text\", \"a\")\nhook(run, on = [startup()])\n")
	maps.Copy(valued, chartOf(name("valued")))
	leaves := hooked(name("leaves"), "def run(ctx):\n    k8s.apply("+applied(name("left"))+")\nhook(run, on = [startup()])\nhook(lambda ctx: None, name = \"gone\", on = [before_delete()])\n")
	return []mark{
		{
			name: "the config that counts", kept: "starling-kept-global", made: made("web"),
			change: func() {
				_, err := config.Create(m.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "starling"},
					Data: map[string]string{"webEnabled": "true", "web": "text: " + id}}, metav1.CreateOptions{})
				m.done(err)
			},
			// The next process has what is kept alone.
			undo: func() { m.done(config.Delete(m.t.Context(), "starling", metav1.DeleteOptions{})) },
			want: func(written bool) error {
				if !written {
					if m.there("web") {
						m.t.Fatal("web is there, by a config that nobody knows of any more")
					}
					return m.is("web", status.ModuleOff)
				}
				return m.is("web", status.ModuleReady)
			},
		},
		{
			name: "a message", kept: "starling-kept-" + name("says"), made: func() bool { return m.says(id) > 0 },
			change: grow(hooked(name("says"), fmt.Sprintf("def run(ctx):\n    if not ctx.state.get(\"said\"):\n        http.send(\"POST\", %q, body = %q)\n        ctx.state.set(\"said\", True)\nhook(run, on = [startup()])\n", m.listener.URL, id))),
			want: func(bool) error {
				if n := m.says(id); n != 1 {
					return fmt.Errorf("it was heard %d times", n)
				}
				return nil
			},
		},
		{name: "the place of a set", kept: "starling-set-of-", made: made(name("member")), want: exists(name("member")),
			change: grow(hooked(name("sets"), "def run(ctx):\n    k8s.apply_set(\"all\", ["+applied(name("member"))+"])\nhook(run, on = [startup()])\n"))},
		{name: "the authority of webhooks", kept: "starling-webhooks", change: m.reviews, made: func() bool { return len(m.registered()) > 0 }, want: m.denies},
		{name: "the record of a release", kept: "starling-releases", made: made(name("released")), want: ready(name("released")),
			change: grow(late(name("released")))},
		{name: "the place of a module", kept: "starling-kept-global", made: made(name("after")), want: ready(name("after")), change: grow(after)},
		{name: "the values of a hook", kept: "starling-kept-" + name("valued"), made: made(name("valued")), want: ready(name("valued")), change: grow(valued)},
		{name: "the note that hooks have run", kept: "starling-kept-" + name("leaves"), made: made(name("left")), want: exists(name("left")), change: grow(leaves)},
		{name: "a finalizer", kept: "starling-kept-" + name("holds"), want: ready(name("holds")),
			made: func() bool {
				cm, err := config.Get(m.t.Context(), name("held"), metav1.GetOptions{})
				m.done(err)
				return len(cm.Finalizers) > 0
			},
			change: func() {
				_, err := config.Create(m.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name("held"), Labels: map[string]string{"held": id}}}, metav1.CreateOptions{})
				m.done(err)
				m.write(hooked(name("holds"), `hook(lambda ctx: None, name = "a", on = [k8s.watch("v1", "ConfigMap", name = "all", namespaces = ["$NS"], labels = {"held": "`+id+`"}, filter = ["metadata.name"])],
     for_each = "all", cleanup = lambda ctx: None)
`))
			}},
	}
}

// keeps says that a request writes an object whose name begins so.
func keeps(name string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		if !proxy.Writes(r) || proxy.Leases(r) {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		return err == nil && (strings.Contains(r.URL.Path, "/"+name) || r.Method == http.MethodPost && bytes.Contains(body, []byte(`"name":"`+name)))
	}
}

// Row 6: all that the next process goes by is kept before what it protects is there. A process is killed while it
// cannot write the one, and as it has written it; the next one does what is meant. The short form has one mark of each
// kind.
func TestKilledBetweenAMarkAndWhatItProtects(t *testing.T) {
	t.Parallel()
	m := newMarks(t)
	r := m.replicas[0]
	for _, written := range []bool{false, true} {
		all := m.marks(fmt.Sprint("w", written))
		if !long {
			all = all[:4]
		}
		for i, k := range all {
			at := make(chan struct{}, 1)
			fault := proxy.Fault{Name: k.name, On: keeps(k.kept), Strike: func(_ http.ResponseWriter, req *http.Request, next http.Handler, _ *rand.Rand) {
				if written && r.Alive() {
					next.ServeHTTP(httptest.NewRecorder(), req)
					r.Kill()
				}
				select {
				case at <- struct{}{}:
				default:
				}
				panic(http.ErrAbortHandler)
			}}
			m.proxy.Inject(fault)
			k.change()
			select {
			case <-at:
			case <-time.After(soon):
				t.Fatalf("%d, %s: nothing is kept", i, k.name)
			}
			for began := time.Now(); !written && time.Since(began) < unmarked; time.Sleep(20 * time.Millisecond) {
				if k.made() {
					t.Errorf("%s: what it protects is there before it is kept", k.name)
					break
				}
			}
			r.Kill()
			m.proxy.Inject()
			if k.undo != nil {
				k.undo()
			}
			m.freeLease()
			m.eventually(k.name, func() error { return k.want(written) })
		}
	}
	if kinds := slices.Compact(m.heard); len(kinds) != 2 {
		t.Errorf("heard %v", m.heard)
	}
}
