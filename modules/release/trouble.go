package release

import (
	"net/http"
	"sync/atomic"

	"github.com/starling-operator/starling/runtime/lane"
)

// trouble counts requests to which the API server had no answer, or only that it is overloaded or fails. Errors of Helm do
// not tell that: most are texts, of which the chain of causes has been lost.
type trouble struct{ requests atomic.Int64 }

// passing marks the error of an operation if there was trouble since the count was before.
func (t *trouble) passing(err error, before int64) error {
	if err == nil || t.requests.Load() == before {
		return err
	}
	return &lane.Passing{Err: err}
}

func (t *trouble) wrap(next http.RoundTripper) http.RoundTripper { return &troubled{t, next} }

type troubled struct {
	of   *trouble
	next http.RoundTripper
}

// RoundTrip passes req on, and looks at the answer.
func (t *troubled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil && req.Context().Err() == nil || err == nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError) {
		t.of.requests.Add(1)
	}
	return resp, err
}
