package release

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fence stands between one Helm action and the API server. Helm's actions cannot
// be stopped from inside: some take no context, and those that do return while
// a goroutine of theirs goes on writing. So each action gets its own
// transport, and closing that transport is what stops it: an action that timed out can
// never write beside its successor.
//
// A request that is not let through is answered 403 here, without the network:
// Helm takes that for final where it would retry a broken connection.
type fence struct {
	next http.RoundTripper
	keep func(*http.Request) bool

	mu    sync.Mutex
	state fenceState
	why   string

	flight context.Context
	cut    context.CancelFunc
}

type fenceState uint8

const (
	fenceOpen fenceState = iota
	fenceNarrow
	fenceShut
)

// newFence returns an open fence in front of next. keep says which requests
// still pass once it is narrow.
func newFence(next http.RoundTripper, keep func(*http.Request) bool) *fence {
	flight, cut := context.WithCancel(context.Background())
	return &fence{next: next, keep: keep, flight: flight, cut: cut}
}

// narrow lets only the requests pass that keep allows: what Helm needs to write
// down how the action ended. Requests that are under way go on. why ends up in
// the errors.
func (f *fence) narrow(why string) { f.move(fenceNarrow, why) }

// shut lets nothing pass any more and cancels what is under way.
func (f *fence) shut(why string) {
	f.move(fenceShut, why)
	f.cut()
}

func (f *fence) move(to fenceState, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state < to {
		f.state = to
		f.why = cmp.Or(f.why, why)
	}
}

// RoundTrip passes req on, or answers it itself.
func (f *fence) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	state, why := f.state, f.why
	f.mu.Unlock()
	if state == fenceShut || state == fenceNarrow && !f.keep(req) {
		if req.Body != nil {
			req.Body.Close()
		}
		return refusal(req, why), nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(f.flight, cancel)
	resp, err := f.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	// The context has to live as long as the body: a watch is a body.
	resp.Body = &fencedBody{ReadCloser: resp.Body, done: func() { stop(); cancel() }}
	return resp, nil
}

type fencedBody struct {
	io.ReadCloser
	done func()
}

// Close ends the request.
func (b *fencedBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// refusal is the answer to a request that does not pass, in the form of the API
// server's own.
func refusal(req *http.Request, why string) *http.Response {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   metav1.StatusReasonForbidden,
		Message:  "not sent: " + why,
		Code:     http.StatusForbidden,
	})
	if err != nil { // plain strings always marshal
		body = nil
	}
	return &http.Response{
		Status:        "403 Forbidden",
		StatusCode:    http.StatusForbidden,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(string(body))),
		ContentLength: int64(len(body)),
		Request:       req,
	}
}

// keepStorage allows reading and updating the Secrets of one release, so that an
// action that is stopped can still be marked as failed.
func keepStorage(ref Ref) func(*http.Request) bool {
	secrets := regexp.MustCompile(`/api/v1/namespaces/` + regexp.QuoteMeta(ref.Namespace) + `/secrets(/sh\.helm\.release\.v1\.` +
		regexp.QuoteMeta(ref.Name) + `\.v[0-9]+)?$`)
	return func(req *http.Request) bool {
		return (req.Method == http.MethodGet || req.Method == http.MethodPut) && secrets.MatchString(req.URL.Path)
	}
}
