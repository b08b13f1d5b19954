package builtins

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

func testHosts() effect.Hosts {
	hosts, err := effect.ParseHosts([]string{"api.example.com", "*.example.org:8080"})
	if err != nil {
		panic(err)
	}
	return hosts
}

// fakeFetcher answers with the request that it got.
type fakeFetcher struct{}

func (f fakeFetcher) Gather(_ context.Context, requests []effect.Request, _ int) []Gathered {
	return InTurn(requests, f.fetch)
}

func (fakeFetcher) fetch(r effect.Request) (Fetched, error) {
	switch {
	case strings.Contains(r.URL, "/down"):
		return Fetched{}, &NoAnswerError{"connection refused"}
	case strings.Contains(r.URL, "/refused"):
		return Fetched{}, errors.New("leads to 10.0.0.1")
	case strings.HasSuffix(r.URL, "/404"):
		return Fetched{Status: 404, Body: []byte("\xffgone")}, nil
	}
	body, err := json.Marshal(r)
	return Fetched{Status: 200, Headers: map[string]string{"content-type": "application/json"}, Body: body}, err
}

func TestHTTPIsForRunsAlone(t *testing.T) {
	run := newTestRun(new(int))
	for phase, want := range map[spec.Phase]string{
		spec.InReview:  "http.send is not available in a hook that answers an admission request",
		spec.InConvert: "http.send is not available in a conversion",
		spec.InReceive: "",
		spec.InRun:     "",
	} {
		_, err := exec(t, &Context{Phase: phase, Run: run, Log: &memoryLog{}}, "http.send('POST', 'https://api.example.com')")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v", phase, err)
		}
	}
	if _, err := exec(t, &Context{Phase: spec.InReview, Run: run, Log: &memoryLog{}}, "r = http.get('https://api.example.com').status"); err != nil {
		t.Error(err)
	}
	run.HTTP = nil
	if _, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "http.get('https://api.example.com')"); err == nil || !strings.Contains(err.Error(), "GET https://api.example.com: nobody answers without a cluster") {
		t.Errorf("got %v", err)
	}
	if _, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "x = 1 if http.get('https://api.example.com', default = None) == None else fail('no')"); err != nil {
		t.Errorf("got %v", err)
	}
	if _, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "x = 1 if 'nobody answers' in http.request('POST', 'https://api.example.com').error else fail('no')"); err != nil {
		t.Errorf("got %v", err)
	}
	run.Hosts = nil
	if _, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, "http.send('POST', 'https://api.example.com')"); err == nil || !strings.Contains(err.Error(), "is not listed") {
		t.Errorf("got %v", err)
	}
}
