package sim

import (
	"net/http"
	"sync"
)

// counted counts the requests of the process. Helm makes some side by side.
type counted struct {
	next http.RoundTripper

	mu   sync.Mutex
	n    int
	last string
}

// RoundTrip implements [http.RoundTripper].
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.n++
	c.last = r.Method + " " + r.URL.RequestURI()
	c.mu.Unlock()
	return c.next.RoundTrip(r)
}

// Requests is how many requests processes have made to the API server so far, and the last
// one. Those of watches are not among them: here a watch looks at the cluster itself.
func (w *World) Requests() (n int, last string) {
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	return w.requests.n, w.requests.last
}

// Stale has the next process list a kind as it is now, and then as it is by then.
func (w *World) Stale(kind string) {
	if w.stale == nil {
		w.stale = map[string]string{}
	}
	w.stale[kind] = w.store.Version()
}
