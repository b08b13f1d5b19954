package live

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/httpserver"
	"github.com/starling-operator/starling/runtime/inputs"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/webhook"
	"github.com/starling-operator/starling/stdlib"
)

// fixture is a driver on an API server in memory, without a socket, so that it works in
// a bubble of synctest.
type fixture struct {
	*testing.T
	store  *store.Store
	config *clientrest.Config
	// namespace is the operator's.
	namespace string
	driver    *Driver
	dir       string
	stop      context.CancelFunc
	ended     chan error                          // what Run returned
	before    func(*http.Request) int             // is called with each request; may be nil, and 0 lets it pass
	answered  func(*http.Request, *http.Response) // is called with each answer; may be nil
	receive   *httpserver.Listener                // nil in a bubble
	webhooks  *webhook.Endpoint                   // nil in a bubble: nothing listens
	objects   bool                                // there are Module objects
	line      *line                               // to the API server
	lease     LeaseTimes                          // zero: those of people
}

// renewsSeldom is for tests that take minutes of their clock and are not about the Lease: a third of their work would
// be its renewals.
func renewsSeldom(f *fixture) {
	f.lease = LeaseTimes{Duration: 15 * time.Minute, Renew: 10 * time.Minute, Retry: time.Minute}
}

// line is the connection to the API server, which a test may cut.
type line struct {
	mu   sync.Mutex
	up   context.Context // ends as it is cut
	down context.CancelFunc
}

func newLine() *line {
	l := &line{}
	l.mend()
	return l
}

func (l *line) cut() { l.down() }

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.down = context.WithCancel(context.Background())
}

// carry gives a request an end that comes as the line is cut.
func (l *line) carry(r *http.Request) (*http.Request, error) {
	if l == nil { // nobody cuts it
		return r, nil
	}
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	if up.Err() != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(up, cancel)
	return r.WithContext(ctx), nil
}

var builtinKinds = sync.OnceValue(store.NewBuiltins)

// RoundTrip answers the driver's requests.
func (f *fixture) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.before != nil {
		if code := f.before(r); code != 0 {
			return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
	}
	r, err := f.line.carry(r)
	if err != nil {
		return nil, err
	}
	resp, err := f.transport().RoundTrip(r)
	if err == nil && f.answered != nil {
		f.answered(r, resp)
	}
	return resp, err
}

func (f *fixture) transport() http.RoundTripper { return rest.New(rest.Options{Store: f.store}) }

// newFixture makes a driver of the instance ops/starling with these files as its tree.
func newFixture(t *testing.T, files map[string]string, with ...func(*fixture)) *fixture {
	t.Helper()
	f := &fixture{T: t, dir: t.TempDir(), ended: make(chan error, 1), namespace: "ops", line: newLine()}
	f.store = store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true})
	f.config = &clientrest.Config{Host: "http://sim", Transport: f}
	for _, set := range with {
		set(f)
	}
	f.driver = f.newDriver(files)
	return f
}

func (f *fixture) newDriver(files map[string]string) *Driver {
	f.Helper()
	metrics, err := NewMetrics(prometheus.NewRegistry(), "test")
	if err != nil {
		f.Fatal(err)
	}
	marks, err := OpenMarks(f.dir)
	if err != nil {
		f.Fatal(err)
	}
	d, err := New(Options{
		Client: f.newClient(), Generation: loadTree(f.T, files), Namespace: f.namespace, Name: "starling", Version: "test",
		Inputs: f.inputs(), ModuleObjects: f.objects,
		Webhooks: f.listens(),
		Receive:  f.receive,
		Lease:    f.lease,
		StateDir: f.dir, Marks: marks, Metrics: metrics, Log: zerolog.New(zerolog.NewTestWriter(f.T)),
	})
	if err != nil {
		f.Fatal(err)
	}
	return d
}

func (f *fixture) listens() webhook.Endpoint {
	if f.webhooks != nil {
		return *f.webhooks
	}
	return webhook.Endpoint{Unreachable: "there is no socket"}
}

// inputs has what the engine is given handled again at the end of the test.
func (f *fixture) inputs() *inputs.Recorder {
	path := filepath.Join(f.TempDir(), "inputs")
	f.Cleanup(func() {
		file, err := os.Open(path)
		if err != nil {
			f.Error(err)
			return
		}
		defer file.Close()
		if _, err := inputs.Replay(context.Background(), file); err != nil {
			f.Errorf("handled again: %v", err)
		}
	})
	ends := func(_ *zerolog.Event, level zerolog.Level, message string) { // the rest would not be handled again
		if level == zerolog.ErrorLevel {
			f.Error(message)
		}
	}
	return inputs.Record(inputs.Options{Path: path, Version: "test", Log: zerolog.New(zerolog.NewTestWriter(f.T)).Hook(zerolog.HookFunc(ends))})
}

func (f *fixture) newClient() *cluster.Client {
	client, err := cluster.New(cluster.Options{Config: f.config, Log: zerolog.Nop()})
	if err != nil {
		f.Fatal(err)
	}
	return client
}

// start runs the driver. It is stopped when the test ends, before its folder goes: it writes into it until then.
func (f *fixture) start() {
	ctx, stop := context.WithCancel(f.Context())
	f.stop = stop
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.ended <- f.driver.Run(ctx)
	}()
	f.Cleanup(func() { stop(); <-gone })
}

func loadTree(t *testing.T, files map[string]string) *generation.Generation {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: 1, Log: FileLog(zerolog.Nop()), Governor: script.NewGovernor(script.GovernorOptions{}),
	})
	for _, p := range gen.Problems {
		t.Error(p.String())
	}
	return gen
}
