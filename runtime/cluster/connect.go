package cluster

import (
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// connectPatience is how long a request that connects has others wait. After it the next one
// connects too: the first one may hang.
const connectPatience = time.Second

// sharedConnect has requests get their connections one after the other, and answers come as
// they will. Go's transport connects once per request that finds no connection with room:
// a thousand watches that start at once would connect hundreds of times, and use ten.
type sharedConnect struct {
	turn chan struct{} // held by the request that gets its connection
	next http.RoundTripper
}

// RoundTrip sends the request.
func (s *sharedConnect) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave := sync.OnceFunc(func() { <-s.turn })
	defer leave()
	late := time.AfterFunc(connectPatience, leave)
	defer late.Stop()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { leave() }}
	return s.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
}

// WrappedRoundTripper lets client-go find the connections below.
func (s *sharedConnect) WrappedRoundTripper() http.RoundTripper { return s.next }
