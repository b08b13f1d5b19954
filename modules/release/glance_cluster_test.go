//go:build e2e

package release

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// On the real API server, too, unchanged releases are read with pages of a list after a
// restart, old revisions left out.
func TestRealReleasesAreListed(t *testing.T) {
	f := setup(t)
	f.makeApps()
	var lists atomic.Int64
	f.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/secrets") && r.Method == http.MethodGet && strings.Contains(r.URL.Query().Get("labelSelector"), "owner=helm") {
				lists.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	const n = 20
	for i := range n {
		f.reconcile(f.numbered(i))
	}
	again := f.numbered(n - 1)
	again.Values["color"] = "other"
	f.reconcile(again)
	f.Manager = f.manager()
	lists.Store(0)
	began := time.Now()
	for i := range n - 1 {
		if res := f.reconcile(f.numbered(i)); res.Action != ActionUnchanged {
			t.Errorf("release %d: %s, %s", i, res.Action, res.Reason)
		}
	}
	if res := f.reconcile(again); res.Action != ActionUnchanged || res.Revision != 2 {
		t.Errorf("the last release: %s, revision %d", res.Action, res.Revision)
	}
	windows := 1 + time.Since(began)/glanceWindow
	if got := lists.Load(); got > int64(windows)*(glanceBurst+1) {
		t.Errorf("%d lists for %d releases in %d windows", got, n, windows)
	}
}
