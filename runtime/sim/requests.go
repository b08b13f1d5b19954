package sim

import "net/http"

// counted counts the requests of the process.
type counted struct {
	next http.RoundTripper
	n    int
	last string
}

// RoundTrip implements [http.RoundTripper].
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	c.last = r.Method + " " + r.URL.RequestURI()
	return c.next.RoundTrip(r)
}

// Requests is how many requests processes have made to the API server so far, and the last
// one. Those of watches are not among them: here a watch looks at the cluster itself.
func (w *World) Requests() (n int, last string) { return w.requests.n, w.requests.last }

// Stale has the next process list a kind as it is now, and then as it is by then.
func (w *World) Stale(kind string) {
	if w.stale == nil {
		w.stale = map[string]string{}
	}
	w.stale[kind] = w.store.Version()
}
