package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortDir returns a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{
		Listen:   "127.0.0.1:0",
		Metrics:  prometheus.NewRegistry(),
		Healthy:  func() (bool, string) { return true, "" },
		Ready:    func() (bool, string) { return true, "" },
		Released: func() (bool, string) { return true, "" },
		Socket:   filepath.Join(shortDir(t), "admin", "starling.sock"),
		Name:     "starling",
		Status:   func(context.Context) (status.Status, error) { return status.Status{}, nil },
		Explain:  func(context.Context, string) (values.ExplainInput, error) { return values.ExplainInput{}, nil },
	}
}

// start runs a server until the test ends, or until the returned stop is called,
// which waits for Run and returns its error.
func start(t *testing.T, o Options, change ...func(*Server)) (*Server, func() error) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop := func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { stop() })
	return s, stop
}

func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + s.Addr() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestHTTP(t *testing.T) {
	o := options(t)
	reg := prometheus.NewRegistry()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ready_nodes", Help: "Nodes."})
	g.Set(2)
	reg.MustRegister(g)
	o.Metrics = reg
	ready := make(chan bool, 1)
	ready <- false
	o.Ready = func() (bool, string) {
		select {
		case <-ready:
			return false, "module hello is starting"
		default:
			return true, ""
		}
	}
	hung := make(chan bool, 1)
	o.Healthy = func() (bool, string) {
		select {
		case <-hung:
			return true, ""
		default:
			hung <- true
			return false, "the engine has been at one step for 2m0s"
		}
	}
	s, stop := start(t, o)
	for _, c := range []struct {
		path string
		code int
		body string
	}{
		{"/healthz", 503, "not healthy: the engine has been at one step for 2m0s\n"},
		{"/healthz", 200, "ok\n"},
		{"/readyz", 503, "not ready: module hello is starting\n"},
		{"/readyz", 200, "ok\n"},
		{"/metrics", 200, "\nready_nodes 2\n"},
		{"/v1/status", 404, "nothing here; there are GET /metrics, /healthz, /readyz and /readyz/modules\n"},
	} {
		code, body := get(t, s, c.path)
		if code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %q, want %d %q", c.path, code, body, c.code, c.body)
		}
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := os.Stat(o.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there after the stop: %v", err)
	}
}

// The connections of a port are bounded, see package httplimit.
func TestConnectionsAreBounded(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if typ := fmt.Sprintf("%T", ln); typ != "*httplimit.listener" {
		t.Errorf("connections to %s are not bounded", typ)
	}
}

func TestStatusOverSocket(t *testing.T) {
	o := options(t)
	want := status.Status{Leader: true, Modules: []status.Module{{Name: "hello", Reason: "because"}}}
	o.Status = func(context.Context) (status.Status, error) { return want, nil }
	_, stop := start(t, o)

	client := NewClient(ClientOptions{Socket: o.Socket})
	got, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for path, mode := range map[string]os.FileMode{o.Socket: 0o600, filepath.Dir(o.Socket): 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), mode)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the stop: %v, want ErrNotRunning", err)
	}
}

func TestClientErrors(t *testing.T) {
	o := options(t)
	o.Status = func(context.Context) (status.Status, error) { return status.Status{}, errors.New("engine is gone") }
	start(t, o)
	_, err := NewClient(ClientOptions{Socket: o.Socket}).Status(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "answered: engine is gone") {
		t.Errorf("error of the status: %v", err)
	}

	slow := options(t)
	slow.Status = func(ctx context.Context) (status.Status, error) {
		<-ctx.Done()
		return status.Status{}, ctx.Err()
	}
	start(t, slow)
	_, err = NewClient(ClientOptions{Socket: slow.Socket, Timeout: time.Millisecond}).Status(t.Context())
	if err == nil || !strings.Contains(err.Error(), "did not answer within 1ms") {
		t.Errorf("slow answer: %v", err)
	}
}

func TestSocketOfTheDeadIsReplaced(t *testing.T) {
	o := options(t)
	if err := os.MkdirAll(filepath.Dir(o.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false) // as kill -9 leaves it
	ln.Close()
	start(t, o)
	if _, err := NewClient(ClientOptions{Socket: o.Socket}).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewErrors(t *testing.T) {
	running := options(t)
	first, _ := start(t, running)
	open := filepath.Join(shortDir(t), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(shortDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	addr := first.Addr()
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"port in use": {
			func(o *Options) { o.Listen = addr },
			"cannot listen on " + addr + ": port in use; choose another with --listen",
		},
		"no address": {
			func(o *Options) { o.Listen = "8080" },
			`cannot listen on "8080": not an address; give --listen HOST:PORT, as 127.0.0.1:8080`,
		},
		"impossible port": {
			func(o *Options) { o.Listen = "127.0.0.1:99999" },
			"cannot listen on 127.0.0.1:99999: invalid port; choose another with --listen",
		},
		"live socket": {
			func(o *Options) { o.Socket = running.Socket },
			"another starling named starling runs with this --state-dir (socket " + running.Socket + "); stop it, or choose another --name or --state-dir",
		},
		"long socket path": {
			func(o *Options) { o.Socket = "/" + strings.Repeat("x", 103) },
			"socket path /" + strings.Repeat("x", 103) + " has 104 bytes, a socket can have 103; choose a shorter --state-dir",
		},
		"folder open to others": {
			func(o *Options) { o.Socket = filepath.Join(open, "s") },
			"folder " + open + " is open to others (mode 0755); run: chmod 700 " + open,
		},
		"folder is a file": {
			func(o *Options) { o.Socket = filepath.Join(file, "s") },
			"cannot make folder " + file + ": not a directory; choose another with --state-dir",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			c.change(&o)
			s, err := New(o)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
	// The failed attempts took nothing from the one that runs.
	if _, err := NewClient(ClientOptions{Socket: running.Socket}).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestExplainOverTheSocket(t *testing.T) {
	o := options(t)
	text := "replicas: 3\nbig: 9007199254740993\nlist: [1, {a: 1.5}]\n"
	in := values.ExplainInput{Read: func(string) []byte { return []byte(text) }}
	in.Section.Section = values.Section{Name: "web", Key: "web", Static: []values.Layer{{Name: values.LayerChart, File: "web/values.yaml", Data: map[string]any{
		"replicas": int64(3), "big": int64(9007199254740993), "list": []any{int64(1), map[string]any{"a": 1.5}},
	}}}}
	in.Global = &values.SectionSources{}
	o.Explain = func(_ context.Context, module string) (values.ExplainInput, error) {
		if module != "web & more" {
			return values.ExplainInput{}, fmt.Errorf("there is no module %q", module)
		}
		return in, nil
	}
	start(t, o)
	client := NewClient(ClientOptions{Socket: o.Socket})
	got, err := client.Explain(t.Context(), "web & more")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.Explain(), got, cmpopts.IgnoreUnexported(values.Explanation{}, values.Step{})); diff != "" {
		t.Error(diff)
	}
	if _, err := client.Explain(t.Context(), "wbe"); err == nil || !strings.HasSuffix(err.Error(), `answered: there is no module "wbe"`) {
		t.Errorf("no such module: %v", err)
	}
}

func TestParentsOverTheSocket(t *testing.T) {
	o := options(t)
	want := []status.Parent{{Controller: "web/two", Key: "shop/blog", Waits: "a host", Actions: []status.Action{{Op: "wait", Child: "ConfigMap shop/blog", Part: "a", Why: "b"}}}}
	o.Parents = func(_ context.Context, module, key string) ([]status.Parent, error) {
		if module != "web & more" || key != "shop/blog" {
			return nil, fmt.Errorf("there is no parent %q", key)
		}
		return want, nil
	}
	start(t, o)
	client := NewClient(ClientOptions{Socket: o.Socket})
	got, err := client.Parents(t.Context(), "web & more", "shop/blog")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := client.Parents(t.Context(), "web", "shop/wiki"); err == nil || !strings.HasSuffix(err.Error(), `answered: there is no parent "shop/wiki"`) {
		t.Errorf("no such parent: %v", err)
	}
}

// A run is asked for with a POST alone, on the socket alone.
func TestARunIsAskedForOverTheSocket(t *testing.T) {
	o := options(t)
	o.RunNow = func(_ context.Context, module, hook string) ([]string, error) {
		if module != "web & more" {
			return nil, errors.New("this starling stands by: another one leads; ask that one")
		}
		return []string{hook, "web/b"}, nil
	}
	s, _ := start(t, o)
	client := NewClient(ClientOptions{Socket: o.Socket})
	hooks, err := client.RunNow(t.Context(), "web & more", "web/hooks/a.star:f")
	if want := []string{"web/hooks/a.star:f", "web/b"}; err != nil || !slices.Equal(hooks, want) {
		t.Errorf("%q, %v", hooks, err)
	}
	if _, err := client.RunNow(t.Context(), "web", ""); err == nil || !strings.HasSuffix(err.Error(), "answered: this starling stands by: another one leads; ask that one") {
		t.Error(err)
	}
	if _, err := client.send(t.Context(), http.MethodGet, runPath+"?module=web"); err == nil || !strings.Contains(err.Error(), "has no GET /v1/run") {
		t.Errorf("asked with GET: %v", err)
	}
	if code, _ := get(t, s, runPath); code != http.StatusNotFound {
		t.Errorf("on the HTTP address: %d", code)
	}
}
