package instance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// fakePods are pods of an instance, with an admin API each.
type fakePods struct {
	api          *apitest.Server
	open, opened atomic.Int32 // connections to them
}

// start serves pods of these names, and returns who asks them.
func (f *fakePods) start(t *testing.T, admin func(pod string, w http.ResponseWriter, r *http.Request), names ...string) Target {
	t.Helper()
	f.api = apitest.New(t)
	addresses := map[string]string{}
	for _, name := range names {
		f.api.Put(map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": "ops", "labels": map[string]any{"starling.dev/role": "standby"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "starling", "args": []any{"run"}}}},
			"status":   map[string]any{"phase": "Running"},
		})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { admin(name, w, r) }))
		t.Cleanup(server.Close)
		addresses[name] = server.Listener.Addr().String()
	}
	host, err := url.Parse(f.api.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	others := httputil.NewSingleHostReverseProxy(host)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, exec := strings.CutSuffix(r.URL.Path, "/exec")
		if !exec {
			others.ServeHTTP(w, r)
			return
		}
		f.open.Add(1)
		f.opened.Add(1)
		defer f.open.Add(-1)
		copyTo(t, addresses[path[strings.LastIndex(path, "/")+1:]], e2e.OpenSocket(w, r))
	}))
	t.Cleanup(server.Close)
	asks := Target{Access: Access{kubeconfig: kubeconfigOf(t, server.URL)}}
	asks.Instance.Namespace, asks.Instance.Name = "ops", "starling"
	return asks
}

// copyTo copies between a command in a pod and an address, until one of both ends.
func copyTo(t *testing.T, address string, p *e2e.Socket) {
	defer p.Close()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	go func() {
		defer p.Close()
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			p.Say(1, string(buf[:n]))
		}
	}()
	for {
		_, payload, err := p.Hear()
		if err != nil {
			return
		}
		if len(payload) > 0 && payload[0] == 0 {
			_, _ = conn.Write(payload[1:])
		}
	}
}

// An instance that is asked again and again has one connection to its pods, also while none of them leads: each
// connection is a process in a pod.
func TestQuestionsToPodsShareAConnection(t *testing.T) {
	var leads atomic.Bool
	var pods fakePods
	asks := pods.start(t, func(_ string, w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"leader":%t}`, leads.Load())
	}, "a", "b", "c")
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	ask := func() {
		t.Helper()
		if _, err := asks.Client(cmd); err != nil {
			t.Fatal(err)
		}
	}
	oneOpen := func(when string) {
		t.Helper()
		for range 1000 {
			if pods.open.Load() == 1 {
				return
			}
			<-time.After(100 * time.Millisecond)
		}
		t.Errorf("%s: %d connections are open", when, pods.open.Load())
	}
	for range 10 {
		ask()
		asks.looked = time.Now() // however slow the machine is
	}
	oneOpen("nobody leads")
	// They are 3 where the machine has time: net/http gives up one whose request is not written soon.
	if n := pods.opened.Load(); n >= 10 {
		t.Errorf("10 questions took %d connections", n)
	}
	asks.looked = time.Time{}
	ask()
	oneOpen("it has looked again")
	leads.Store(true)
	asks.looked = time.Time{}
	ask()
	oneOpen("one leads")
}

// follow shows the log of all pods.
func follow(cmd *cobra.Command, asks Target) error {
	client, err := asks.Client(cmd)
	if err != nil {
		return err
	}
	defer client.Close()
	return asks.Logs(cmd, client, admin.LogsOptions{Tail: -1, Follow: true}, func(line []byte) error {
		_, err := cmd.OutOrStdout().Write(append(line, '\n'))
		return err
	})
}

// The log of an instance goes on with pods that come, and with the lines of a pod that were not there before.
func TestLogsGoOnInARollout(t *testing.T) {
	var pods fakePods
	var asked atomic.Int32 // of b
	asks := pods.start(t, func(pod string, w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "logs"):
			fmt.Fprint(w, `{"leader":true}`)
		case pod == "a":
			fmt.Fprintln(w, `{"time":"2026-01-02T03:04:05Z","message":"of a"}`)
		case asked.Add(1) == 1:
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprintln(w, `{"time":"2026-01-02T03:04:06Z","message":"of b"}`)
			if asked.Load() > 2 {
				fmt.Fprintln(w, `{"time":"2026-01-02T03:04:07Z","message":"the end"}`)
			}
		}
	}, "a", "b")
	b := pods.api.Object("v1", "Pod", "ops", "b")
	pods.api.Remove("v1", "Pod", "ops", "b")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out ends
	out.at, out.end = "the end", cancel
	out.first = func() {
		pods.api.Remove("v1", "Pod", "ops", "a")
		pods.api.Put(b)
	}
	var notes bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	err := follow(cmd, asks)
	want := `{"pod":"a","time":"2026-01-02T03:04:05Z","message":"of a"}
{"pod":"b","time":"2026-01-02T03:04:06Z","message":"of b"}
{"pod":"b","time":"2026-01-02T03:04:07Z","message":"the end"}
`
	if err != nil || out.String() != want || !strings.Contains(notes.String(), "note: the log of pod a has ended\n") {
		t.Errorf("got %v, %s, %s", err, out.String(), notes.String())
	}
}

// A pod that had nothing to say, and does not answer while it starts anew, has answered.
func TestLogsOfAQuietPodGoOn(t *testing.T) {
	var pods fakePods
	var asked atomic.Int32
	asks := pods.start(t, func(_ string, w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "logs"):
			fmt.Fprint(w, `{"leader":true}`)
		case asked.Add(1) == 2:
			panic(http.ErrAbortHandler)
		case asked.Load() > 2:
			fmt.Fprintln(w, `{"message":"the end"}`)
		}
	}, "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := ends{at: "the end", first: func() {}, end: cancel}
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := follow(cmd, asks); err != nil || !strings.Contains(out.String(), "the end") {
		t.Errorf("got %v, %s", err, out.String())
	}
}

// ends is an output that calls first after the first line, and end after one with a text.
type ends struct {
	bytes.Buffer
	at         string
	first, end func()
}

func (e *ends) Write(p []byte) (int, error) {
	if e.Len() == 0 {
		e.first()
	}
	if bytes.Contains(p, []byte(e.at)) {
		e.end()
	}
	return e.Buffer.Write(p)
}

// Each error of a pod stands there once, and Ctrl-C before a connection stands is no error of a pod.
func TestLogsOfPodsThatFail(t *testing.T) {
	for name, stop := range map[string]bool{"all fail": false, "Ctrl-C": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var pods fakePods
			asks := pods.start(t, func(pod string, w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.Contains(r.URL.Path, "logs"):
					fmt.Fprint(w, `{"leader":true}`)
				case stop:
					cancel()
					<-r.Context().Done() // until the command has gone
				default:
					http.Error(w, pod+" is ill", http.StatusTeapot)
				}
			}, "a", "b")
			var out, notes bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetContext(ctx)
			cmd.SetOut(&out)
			cmd.SetErr(&notes)
			err := follow(cmd, asks)
			if stop {
				if err != nil || notes.Len() > 0 {
					t.Errorf("got %v, %s", err, notes.String())
				}
				return
			}
			if err == nil || err.Error() != "no pod answers" || strings.Count(notes.String(), "note: ") != 2 {
				t.Errorf("got %v, %s", err, notes.String())
			}
		})
	}
}

// A command that asks again each second asks for the notes about its process without the whole status.
func TestNotesTakeTheReplicaAlone(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/replica" {
			t.Errorf("it asks for %s", r.URL.Path)
		}
		fmt.Fprint(w, `{"leader":false,"holder":"b","generation":3,"reloadFailed":{"reason":"module web: odd"}}`)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	client := admin.NewClient(admin.ClientOptions{Socket: socket})
	defer client.Close()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	want := []string{StandbyNote("b"), "the module tree has changed and does not load as it is now, so generation 3 stays in force: module web: odd"}
	if got := Standing(cmd, client); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
