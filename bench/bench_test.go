package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
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

func TestKernelBytes(t *testing.T) {
	const status = "Name:\tstarling\nVmHWM:\t   60904 kB\nVmRSS:\t   60000 kB\nThreads:\t9\n"
	for key, want := range map[string]int64{"VmRSS": 60000 << 10, "VmHWM": 60904 << 10, "Vm": 0, "Name": 0} {
		if got := kernelBytes([]byte(status), key); got != want {
			t.Errorf("%s is %d, want %d", key, got, want)
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

func TestKernelTime(t *testing.T) {
	const stat = "4711 (a ) strange (name) S 1 4711 4711 0 -1 4194560 9000 0 0 0 123 45 6 7 20 0 9 0 100 1 2 3"
	if got, err := kernelTime([]byte(stat)); err != nil || got != 1680*time.Millisecond {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := kernelTime([]byte("4711 (x) S 1")); err == nil {
		t.Error("half a line was read")
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

// The bytes of a connection come whole and in order, later than without the way; so does
// their end.
func TestFarPassesBytesOn(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn) // an echo
	}()
	const delay = 20 * time.Millisecond
	f, err := startFar(ln.Addr().String(), delay)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", f.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	want := make([]byte, 1<<20)
	for i := range want {
		want[i] = byte(i * i >> 8)
	}
	began := time.Now()
	go func() {
		_, _ = conn.Write(want)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(want), err)
	}
	if took := time.Since(began); took < delay {
		t.Errorf("they took %s, less than %s", took, delay)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}

// A way that ends takes its connections with it.
func TestFarEnds(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := startFar(ln.Addr().String(), 0)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", f.ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := ln.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
}

func TestRelayNotesRequests(t *testing.T) {
	r := &relay{}
	h := r.noting(http.NotFoundHandler())
	for _, url := range []string{
		"/api/v1/namespaces/x/configmaps/app-001",
		"/apis/coordination.k8s.io/v1/namespaces/x/leases/thousand",
		"/api/v1/namespaces/x/secrets?labelSelector=name%3Dapp-002%2Cowner%3Dhelm",
		"/api/v1/namespaces/x/secrets/sh.helm.release.v1.app-003.v1",
		"/api/v1/namespaces/x/configmaps/thousand",
	} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", url, nil))
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

// Played objects are served as the API server serves a watch: all of them, a bookmark, then each change.
func TestPlayedObjects(t *testing.T) {
	p := &played{path: "/api/v1/namespaces", apiVersion: "v1", kind: "Namespace", name: "team", count: 3}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !p.serves(w, req) {
			w.WriteHeader(http.StatusTeapot)
		}
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
