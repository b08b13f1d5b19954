package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// Work of the time when the API server cannot be reached is done afterwards, and
// nothing is lost or done twice: an outage shorter than the Lease ends no process.
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

	cut := time.Now()
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
	f.outlived(cut)
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

// outlived has a process that was cut off for long start anew: after 10 s without its
// Lease it ends, as it should, and a slow machine takes as long for what a test does.
func (f *fixture) outlived(cut time.Time) {
	f.t.Helper()
	if took := time.Since(cut); took > 5*time.Second {
		f.t.Logf("the outage took %s: the process is started anew", took)
		f.process.Kill()
		f.freeLease()
		f.start()
	}
}
