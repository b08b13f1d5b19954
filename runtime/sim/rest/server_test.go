package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const configMapsPath = "http://sim/api/v1/namespaces/default/configmaps"

func newServer(o rest.Options) *rest.Server {
	if o.Store == nil {
		o.Store = store.New(store.Options{Builtins: fuzzBuiltins()})
	}
	return rest.New(o)
}

// ask sends a request and returns code and body; a watch's body is not read.
func ask(t *testing.T, s *rest.Server, method, url, body string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(url, "watch=") {
		return res, nil
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

func TestErrorsOnPurposeReachClients(t *testing.T) {
	st := store.New(store.Options{Builtins: fuzzBuiltins()})
	s := newServer(rest.Options{Store: st})
	gr := schema.GroupResource{Resource: "configmaps"}
	st.FailNext("get", "ConfigMap", apierrors.NewForbidden(gr, "x", errors.New("not today")), 1)
	st.FailNext("get", "ConfigMap", errors.New("it broke"), 1)
	for _, want := range []struct {
		code   int
		reason metav1.StatusReason
	}{{403, metav1.StatusReasonForbidden}, {500, ""}, {404, metav1.StatusReasonNotFound}} {
		res, body := ask(t, s, "GET", configMapsPath+"/x", "")
		var status metav1.Status
		if err := json.Unmarshal(body, &status); err != nil || res.StatusCode != want.code || status.Reason != want.reason || int(status.Code) != want.code {
			t.Errorf("%d %s, want %+v", res.StatusCode, body, want)
		}
	}
}

func TestLargeBodiesAreRefused(t *testing.T) {
	s := newServer(rest.Options{})
	body := `{"metadata":{"name":"x"},"data":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`
	if res, text := ask(t, s, "POST", configMapsPath, body); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %.200s", res.StatusCode, text)
	}
}

func TestWritesAreFollowedUp(t *testing.T) {
	calls := 0
	s := newServer(rest.Options{AfterWrite: func() { calls++ }})
	for _, r := range []struct{ method, url, body string }{
		{"POST", configMapsPath, `{"metadata":{"name":"x"}}`},
		{"POST", configMapsPath, `{"metadata":{"name":"x"}}`}, // refused
		{"POST", configMapsPath + "?dryRun=All", `{"metadata":{"name":"y"}}`},
		{"GET", configMapsPath, ""},
		{"DELETE", configMapsPath + "/x", ""},
	} {
		ask(t, s, r.method, r.url, r.body)
	}
	if calls != 2 {
		t.Errorf("AfterWrite was called %d times, want 2", calls)
	}
}

func TestWatchesEndAndMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(rest.Options{Bookmarks: 10 * time.Second})
		begin := time.Now()
		res, _ := ask(t, s, "GET", configMapsPath+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=25&resourceVersion=1", "")
		text, err := io.ReadAll(res.Body)
		if n := bytes.Count(text, []byte(`"BOOKMARK"`)); err != nil || n != 2 {
			t.Errorf("%d bookmarks, want 2: %s, %v", n, text, err)
		}
		if took := time.Since(begin); took != 25*time.Second {
			t.Errorf("the watch ended after %s, want 25s", took)
		}

		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, "GET", configMapsPath+"?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err = s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() {
			_, err := io.ReadAll(res.Body)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a watch that is given up ends with %v", err)
		}
		res.Body.Close()
		if _, err := s.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Errorf("a request that was given up: %v", err)
		}

		res, _ = ask(t, s, "GET", configMapsPath+"?watch=1", "")
		go func() {
			_, err := io.ReadAll(res.Body)
			ended <- err
		}()
		synctest.Wait()
		res.Body.Close()
		if err := <-ended; err != nil {
			t.Errorf("a watch that is closed ends with %v", err)
		}
	})
}
