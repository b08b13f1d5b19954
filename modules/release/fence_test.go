package release

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const (
	secretPath = "https://h/api/v1/namespaces/apps/secrets/sh.helm.release.v1.web.v2"
	podPath    = "https://h/api/v1/namespaces/apps/pods/a"
)

func TestFence(t *testing.T) {
	tests := []struct {
		method, url        string
		open, narrow, shut bool
	}{
		{http.MethodGet, podPath, true, false, false},
		{http.MethodPost, podPath, true, false, false},
		{http.MethodPut, podPath, true, false, false},
		{http.MethodPatch, podPath, true, false, false},
		{http.MethodDelete, podPath, true, false, false},
		{http.MethodPut, secretPath, true, true, false},
		{http.MethodGet, secretPath, true, true, false},
		{http.MethodGet, "https://h/prefix/api/v1/namespaces/apps/secrets?labelSelector=name%3Dweb", true, true, false},
		{http.MethodPost, "https://h/api/v1/namespaces/apps/secrets", true, false, false},
		{http.MethodDelete, secretPath, true, false, false},
		{http.MethodPut, "https://h/api/v1/namespaces/apps/secrets/sh.helm.release.v1.web2.v2", true, false, false},
		{http.MethodPut, "https://h/api/v1/namespaces/apps2/secrets/sh.helm.release.v1.web.v2", true, false, false},
		{http.MethodPut, "https://h/api/v1/namespaces/apps/secrets/password", true, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+strings.TrimPrefix(tt.url, "https://h"), func(t *testing.T) {
			sent := 0
			f := newFence(roundTripper(func(*http.Request) (*http.Response, error) {
				sent++
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}), keepStorage(Ref{Name: "web", Namespace: "apps"}))
			passes := func() bool {
				t.Helper()
				before := sent
				req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.url, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := f.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				if ok := resp.StatusCode == http.StatusOK; ok != (sent > before) {
					t.Fatalf("status %d, sent %v", resp.StatusCode, sent > before)
				}
				return sent > before
			}
			got := [3]bool{passes()}
			f.narrow("stopped")
			got[1] = passes()
			f.shut("stopped")
			got[2] = passes()
			f.narrow("opens nothing again")
			if passes() != got[2] {
				t.Error("a shut fence opened")
			}
			if want := [3]bool{tt.open, tt.narrow, tt.shut}; got != want {
				t.Errorf("open, narrow, shut: %v, want %v", got, want)
			}
		})
	}
}

// A client takes the fence's answer for a final one and shows the reason.
func TestFenceAnswer(t *testing.T) {
	f := newFence(http.DefaultTransport, keepStorage(Ref{}))
	f.shut("timed out after 1s")
	core, err := corev1client.NewForConfig(&rest.Config{Host: "https://h", Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	_, err = core.Pods("apps").Get(t.Context(), "a", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) || err.Error() != "not sent: timed out after 1s" || transient(err) {
		t.Errorf("%v", err)
	}
}

// Shut cancels what is under way: a request that waits for its answer, and a
// watch, whose answer came long ago.
func TestFenceCutsOff(t *testing.T) {
	started := make(chan struct{})
	f := newFence(roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/watch" {
			pr, pw := io.Pipe()
			context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
			return &http.Response{StatusCode: http.StatusOK, Body: pr}, nil
		}
		close(started)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), keepStorage(Ref{}))
	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://h"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.RoundTrip(req)
	}
	watch, err := get("/watch")
	if err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() { _, err := get("/slow"); slow <- err }()
	<-started
	f.narrow("stopped") // lets both go on
	f.shut("stopped")
	if err := <-slow; !errors.Is(err, context.Canceled) {
		t.Errorf("the slow request: %v", err)
	}
	if _, err := io.ReadAll(watch.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("the watch: %v", err)
	}
	watch.Body.Close()
}
