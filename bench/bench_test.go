package main

import (
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
		{only: "events,speed", wantErr: `there is no section "speed"; use events, burst, memory, modules, runs`},
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
