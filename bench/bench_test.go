package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		only, wantErr string
		want          []string
	}{
		{only: "", want: sectionNames(sections())},
		{only: "modules,events", want: []string{"events", "modules"}},
		{only: "events,speed", wantErr: `there is no section "speed"; use events, burst, memory, modules, heal`},
		{only: "events,", wantErr: `there is no section ""`},
	} {
		chosen, err := choose(sections(), test.only)
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("-only=%s: error %v, want one with %q", test.only, err, test.wantErr)
			}
			continue
		}
		if err != nil {
			t.Errorf("-only=%s: %v", test.only, err)
		}
		if diff := cmp.Diff(test.want, sectionNames(chosen)); diff != "" {
			t.Errorf("-only=%s (-want +got):\n%s", test.only, diff)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, test := range []struct {
		values []time.Duration
		part   float64
		want   time.Duration
	}{
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred[:5], 0.5, 98},
		{hundred[:1], 0.99, 100},
		{hundred[:1], 0, 100},
	} {
		if got := percentile(test.values, test.part); got != test.want {
			t.Errorf("percentile(%d values, %v) = %d, want %d", len(test.values), test.part, got, test.want)
		}
	}
}

func TestListenAddress(t *testing.T) {
	const log = "not JSON\n" + `{"level":"warn","message":"a problem"}` + "\n" +
		`{"level":"info","listen":"127.0.0.1:4711","message":"starts"}` + "\n"
	if got := listenAddress(log); got != "127.0.0.1:4711" {
		t.Errorf("the address is %q", got)
	}
	if got := listenAddress("starts\n"); got != "" {
		t.Errorf("without an address it is %q", got)
	}
}

func TestDesiredTimes(t *testing.T) {
	took, err := desiredTimes([]byte("goos: linux\nBenchmarkDesired/function-2   100   66123 ns/op  57130 B/op\nBenchmarkDesired/function 5 70.5 ns/op\nBenchmarkDesired/run-2 1 9 ns/op\nPASS\n"))
	if want := []time.Duration{66123, 70}; err != nil || !cmp.Equal(took, want) {
		t.Errorf("got %v %v, want %v", took, err, want)
	}
	if _, err := desiredTimes([]byte("PASS\n")); err == nil {
		t.Error("none is no error")
	}
}

func TestSumOf(t *testing.T) {
	const metrics = "# TYPE runs_total counter\nruns_total{hook=\"a}\",module=\"m\"} 41\nruns_total{hook=\"b\"} 1\nruns_total_x{a=\"b\"} 7\n"
	if got := sumOf(metrics, "runs_total"); got != 42 {
		t.Errorf("the sum is %d", got)
	}
}

func TestReview(t *testing.T) {
	body, err := podReview()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ body, want string }{
		{string(body), `"allowed":true`},
		{strings.ReplaceAll(string(body), `"team":"web"`, `"x":"web"`), `label team is missing`},
		{strings.ReplaceAll(string(body), `"memory"`, `"storage"`), `container container-0 has no memory limit`},
		{`{}`, "no AdmissionReview"},
	} {
		w := httptest.NewRecorder()
		review(w, httptest.NewRequest("POST", "/", strings.NewReader(test.body)))
		if !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("the answer is %s, want %s", w.Body, test.want)
		}
	}
}

func TestRelayNotesRequests(t *testing.T) {
	r := &relay{}
	for _, url := range []string{
		"/api/v1/namespaces/x/configmaps/app-001",
		"/api/v1/namespaces/x/secrets?labelSelector=name%3Dapp-002%2Cowner%3Dhelm",
		"/api/v1/namespaces/x/secrets/sh.helm.release.v1.app-003.v1",
		"/api/v1/namespaces/x/configmaps/thousand",
	} {
		r.note(httptest.NewRecorder(), httptest.NewRequest("GET", url, nil), http.NotFoundHandler(), nil)
	}
	asked := r.take()
	if len(asked) != 4 {
		t.Errorf("noted are %q", asked)
	}
	if n := forOthers(asked, "app-001"); n != 2 {
		t.Errorf("%d of %q are for others than app-001", n, asked)
	}
	if again := r.take(); len(again) != 0 {
		t.Errorf("noted twice: %q", again)
	}
}

// A section that fails ends where it stands, and what it has left is cleaned up, last first.
func TestFailedSectionIsCleanedUp(t *testing.T) {
	var did []string
	note := func(what string) { did = append(did, what) }
	b := &bench{ctx: t.Context()}
	err := b.measure(section{run: func(b *bench) {
		b.Cleanup(func() { note("first") })
		b.Cleanup(func() { b.Fatal("second fails, too") })
		b.scope(func() { b.Cleanup(func() { note("scope") }) })
		b.check(errors.New("it fails"))
		note("after")
	}})
	if want := []string{"scope", "first"}; !cmp.Equal(did, want) {
		t.Errorf("it did %q, want %q", did, want)
	}
	if err == nil || err.Error() != "it fails\nsecond fails, too" {
		t.Errorf("the error is %v", err)
	}
	if err := b.measure(section{run: func(*bench) {}}); err != nil {
		t.Errorf("the next section fails with %v", err)
	}
}

// Played objects are served as the API server serves a watch: all of them, a bookmark, then each change.
func TestPlayedObjects(t *testing.T) {
	p := &played{path: "/api/v1/namespaces", apiVersion: "v1", kind: "Namespace", name: "team", count: 3}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !p.serves(req) {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		p.serve(w, req, nil, nil)
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	if resp, err := http.Get(server.URL + "/api/v1/nodes"); err != nil || resp.StatusCode != http.StatusTeapot {
		t.Errorf("another path: %v, %v", resp, err)
	}
	resp, err := http.Get(server.URL + p.path)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := io.ReadAll(resp.Body); strings.Count(string(list), `"uid":"played-team-`) != 3 {
		t.Errorf("the list is %s", list)
	}
	stream, err := http.Get(server.URL + p.path + "?watch=true&sendInitialEvents=true")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stream.Body)
	for _, want := range []string{`"type":"ADDED"`, `"type":"ADDED"`, `"type":"ADDED"`, `"k8s.io/initial-events-end":"true"`, `"resourceVersion":"1000000001"`} {
		if strings.Contains(want, "1000000001") {
			p.change(2)
		}
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("%s, %v; want %s", line, err, want)
		}
	}
}
