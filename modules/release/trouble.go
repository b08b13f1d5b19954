package release

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"sync/atomic"

	"github.com/starling-operator/starling/runtime/lane"
)

// trouble counts requests to which the API server had no answer, or only that it is overloaded or fails. Errors of Helm do
// not tell that: most are texts, of which the chain of causes has been lost.
type trouble struct{ requests atomic.Int64 }

// passing marks the error of an operation if there was trouble since the count was before, or a right is missing: rights
// come without an event. A revision that lacks one is not made again soon, for each try is one more.
func (t *trouble) passing(err error, before int64) error {
	if err == nil {
		return nil
	}
	_, made := errors.AsType[*inRevision](err)
	if t.requests.Load() == before && (made || !byRBAC.MatchString(err.Error())) {
		return err
	}
	return &lane.Passing{Err: err}
}

// ofRevision marks an error that came with a revision.
func ofRevision(res Result, err error) error {
	if err == nil || res.Action == "" {
		return err
	}
	return &inRevision{err}
}

// inRevision is the error of a revision that was made.
type inRevision struct{ error }

// Unwrap gives the error.
func (e *inRevision) Unwrap() error { return e.error }

func (t *trouble) wrap(next http.RoundTripper) http.RoundTripper { return &troubled{t, next} }

type troubled struct {
	of   *trouble
	next http.RoundTripper
}

// RoundTrip passes req on, and looks at the answer.
func (t *troubled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil && req.Context().Err() == nil || err == nil && inTrouble(resp) {
		t.of.requests.Add(1)
	}
	return resp, err
}

// inTrouble says that an answer is one of a server that is overloaded or fails. A webhook of somebody else that fails is
// no trouble of the server: it may last, and each try of a release is a revision.
func inTrouble(resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	head, _ := io.ReadAll(io.LimitReader(resp.Body, mostOfError))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	return !ofWebhooks.Match(head)
}

// mostOfError is how much of an answer is looked at.
const mostOfError = 4 << 10

// ofWebhooks are the words of the API server for a webhook that does not answer.
var ofWebhooks = regexp.MustCompile(`failed calling (admission )?webhook |failed to call webhook: |conversion webhook for .* failed: `)
