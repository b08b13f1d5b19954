package cluster

import (
	"cmp"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"
)

// liveness says after how many seconds without a byte a connection is asked whether it lives, and how many it
// has to answer. A connection that has died, and of which nobody was told, is then closed after 5 seconds, and
// the Lease renewed on a new one. With client-go's times, 30 and 15, the Lease is lost first: requests wait on
// the dead connection, and so do their repetitions. client-go reads them from the environment alone.
var liveness = [][2]string{{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2"}, {"HTTP2_PING_TIMEOUT_SECONDS", "3"}}

// askConnections has connections that are made from now on be asked whether they live.
func askConnections() (err error) {
	for _, setting := range liveness {
		if os.Getenv(setting[0]) == "" { // else somebody knows better
			err = cmp.Or(err, os.Setenv(setting[0], setting[1]))
		}
	}
	return err
}

// connectPatience is how long a request that connects has others wait: it may hang, so the next one connects then.
const connectPatience = time.Second

// sharedConnect has requests get their connections one after the other, and answers come as
// they will. Go's transport connects once per request that finds no connection with room:
// a thousand watches that start at once would connect hundreds of times, and use ten.
type sharedConnect struct {
	turn     chan struct{} // held by the request that gets its connection
	next     http.RoundTripper
	patience time.Duration // connectPatience but in tests
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
	late := time.AfterFunc(s.patience, leave)
	defer late.Stop()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { leave() }}
	return s.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, trace)))
}

// WrappedRoundTripper lets client-go find the connections below.
func (s *sharedConnect) WrappedRoundTripper() http.RoundTripper { return s.next }
