package e2e

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// line is the connection to the API server, which a test may cut.
type line struct {
	net.Listener
	server string

	mu      sync.Mutex
	down    bool
	refused int // connections since it was cut
	open    map[net.Conn]bool
}

func newLine(t *testing.T, server string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{Listener: listener, server: server, open: map[net.Conn]bool{}}
	t.Cleanup(func() { l.cut(); _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(conn)
		}
	}()
	return l
}

// carry copies both ways until one side, or the line, is closed.
func (l *line) carry(conn net.Conn) {
	defer conn.Close()
	out, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer out.Close()
	l.mu.Lock()
	if l.down {
		l.refused++
		l.mu.Unlock()
		return
	}
	l.open[conn], l.open[out] = true, true
	l.mu.Unlock()
	go func() { _, _ = io.Copy(out, conn); _ = out.Close() }()
	_, _ = io.Copy(conn, out)
	l.mu.Lock()
	delete(l.open, conn)
	delete(l.open, out)
	l.mu.Unlock()
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for conn := range l.open {
		_ = conn.Close()
	}
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.refused = false, 0
}

// What happens while the API server cannot be reached is made up for afterwards, and
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
	k, err := clientcmd.LoadFromFile(f.kube)
	if err != nil {
		t.Fatal(err)
	}
	var l *line
	for _, c := range k.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		l = newLine(t, u.Host)
		c.Server = "https://" + l.Addr().String()
	}
	f.kube = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, f.kube); err != nil {
		t.Fatal(err)
	}
	f.touch("a", "a")
	f.touch("b", "b")
	f.start()
	f.waitReady()
	f.waitData("web", map[string]string{"text": "a,b"})
	f.waitRevision(f.ns, "web", 1)

	l.cut()
	f.deleteConfigMap("a")
	f.touch("b", "changed")
	f.touch("c", "new")
	f.configure(map[string]string{"shop": "text: from the user"})
	f.eventually("it has noticed", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refused < 5 {
			return fmt.Errorf("%d connections were refused", l.refused)
		}
		return nil
	})
	l.mend()
	f.waitData("web", map[string]string{"text": "changed,new"})
	f.waitData("shop", map[string]string{"text": "from the user"})
	f.eventually("all has settled", f.quiet)
	f.waitReady()
	f.probe()
	f.waitRevision(f.ns, "shop", 2)
}
