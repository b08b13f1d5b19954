package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
)

// Work of the time when the API server cannot be reached is done afterwards, and
// nothing is lost or done twice.
func TestOutageOfTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe(), map[string]string{
		"web/hooks/a.star": `
def texts(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(texts, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                            filter = lambda o: o.data["text"])])
`}))
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	f.touch("a", "a")
	f.touch("b", "b")
	f.start()
	f.waitReady()
	f.waitData("web", map[string]string{"text": "a,b"})
	f.waitRevision(f.ns, "web", 1)

	l.Cut()
	f.deleteConfigMap("a")
	f.touch("b", "changed")
	f.touch("c", "new")
	f.configure(map[string]string{"shop": "text: from the user"})
	f.eventually("it has noticed", func() error {
		if n := l.Refused(); n < 3 {
			return fmt.Errorf("%d connections were refused", n)
		}
		return nil
	})
	l.Mend()
	f.lead()
	f.waitData("web", map[string]string{"text": "changed,new"})
	f.waitData("shop", map[string]string{"text": "from the user"})
	f.eventually("all has settled", f.quiet)
	f.waitReady()
	f.probe()
	f.waitRevision(f.ns, "shop", 2)
}

// A process that begins while nobody answers at the address of the API server says so, in one line, and works as soon as
// somebody does: a kubelet would wait for minutes before it starts it again.
func TestAStartWithoutTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mirror("web", on))
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	l.Cut()
	f.process = f.run(nil, 0) // start waits until it leads
	f.eventually("it asks again", func() error {
		if n := l.Refused(); n < 10 {
			return fmt.Errorf("%d connections were refused", n)
		}
		return nil
	})
	if said := strings.Count(f.process.Output(), "it is asked again until it answers"); said != 1 || !f.process.Alive() {
		t.Errorf("it says so %d times:\n%s", said, f.process.Output())
	}
	l.Mend()
	f.start()
	f.waitReady()
	f.waitData("web", map[string]string{"text": "plain"})
	f.waitRevision(f.ns, "web", 1)
}

// lead waits until a process leads: on a slow machine an outage outlasts the Lease, and then either may have it.
func (f *fixture) lead() {
	f.t.Helper()
	f.eventually("a process leads", f.follow)
}

// An API server that is away for longer than the Lease lasts, ten minutes for instance (STARLING_OUTAGE=10m), costs no
// process: all stand by, and answer each review, ten in a second, by what they know. One of them goes on with the work once
// the server is back, though objects have changed all the time, and the other one is killed meanwhile.
func TestALongOutage(t *testing.T) {
	t.Parallel()
	away := 20 * time.Second
	if text := os.Getenv("STARLING_OUTAGE"); text != "" {
		var err error
		if away, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	role := mirrors
	role.HooksIn = map[string][]rbacv1.PolicyRule{"$NS": append([]rbacv1.PolicyRule{allow("", "configmaps", "get", "create", "patch")}, mirrors.HooksIn["$NS"]...)}
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe(), beating("one"), map[string]string{
		"web/hooks/a.star": `
def texts(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(texts, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                            filter = lambda o: o.data["text"])])
hook(lambda ctx: deny("it knows " + ",".join(ctx.snapshots["cms"])), name = "guard", on = [
    k8s.validate("v1", "ConfigMap", ["CREATE"], failure_policy = "ignore", namespace_labels = {"e2e": "$NS"}),
    k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = lambda o: o.data["text"], events = [], sync = False),
])
`}), webhookRole(role))
	reviewed := f.labelled()
	l, kube := cluster.NewLine(t, f.kube)
	f.kube = kube
	f.touch("a", "a")
	args := webhookArgs(t)
	f.start(args...)
	f.waitReady()
	f.waitData("web", map[string]string{"text": "a"})
	known := "a"
	f.refused(reviewed, newConfigMap("x", nil), "it knows "+known)
	writes, err := shared.Client.CoreV1().ConfigMaps(f.ns).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=beat"})
	if err != nil {
		t.Fatal(err)
	}
	defer writes.Stop()

	for round, killed := range []bool{false, true} {
		pid := f.process.PID()
		l.Cut()
		f.configure(map[string]string{"shop": fmt.Sprint("text: from the user ", round)})
		f.eventually("it stands by", func() error {
			if st, err := f.status(); err != nil || st.Leader {
				return fmt.Errorf("it leads: %t, %v", st.Leader, err)
			}
			code, body, err := f.http("/readyz")
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%d: %s", code, body)
			}
			return err
		})
		if killed {
			f.standby.Kill()
			f.refused(reviewed, newConfigMap("x", nil), "it knows "+known) // what went to that one is lost
		}
		over, asked := time.After(away), 0
		for back := false; !back; asked++ { // the API server, for all others, is there
			_, err := shared.Client.CoreV1().ConfigMaps(reviewed).Create(t.Context(), newConfigMap("x", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), "it knows "+known) {
				t.Fatalf("review %d: %v, want it to know %s", asked, err, known)
			}
			f.touch("b", fmt.Sprint("away ", asked))
			select { // no condition: this is how long the server is away
			case <-over:
				back = true
			case <-time.After(100 * time.Millisecond):
			case <-t.Context().Done():
				t.FailNow()
			}
		}
		f.touch("b", fmt.Sprint("new ", round))
	drained:
		for {
			select {
			case <-writes.ResultChan():
			default:
				break drained
			}
		}
		l.Mend()
		began := time.Now()
		<-writes.ResultChan()
		t.Logf("round %d: without the server for %s, %d reviews; the first write came %s after its return", round, away, asked, time.Since(began).Round(10*time.Millisecond))
		if !f.process.Alive() || f.process.PID() != pid || !killed && !f.standby.Alive() {
			t.Fatalf("a process has ended:\n%s", f.process.Output())
		}
		f.lead()
		known = fmt.Sprint("a,new ", round)
		f.waitData("web", map[string]string{"text": known})
		f.waitData("shop", map[string]string{"text": fmt.Sprint("from the user ", round)})
		f.waitReady()
	}
	f.probe()
	f.start(args...) // another process in the place of the one that was killed
}
