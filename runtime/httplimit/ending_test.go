package httplimit

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// A request that comes on a kept connection as the server ends is answered, and the client opens no other one for it.
func TestKeptConnectionsEndWithAnAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})}
	end := Ends(server)
	end.Serve(func() error { return server.Serve(ln) }, func(err error) { t.Error(err) })
	client := &http.Client{Transport: &http.Transport{}}
	post := func() (kept, closes bool) {
		t.Helper()
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(is httptrace.GotConnInfo) { kept = is.Reused },
		})
		url := "http://" + ln.Addr().String()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return kept, answer.Close
	}
	if _, closes := post(); closes {
		t.Error("a connection closes before the end")
	}
	drained := make(chan struct{})
	go func() { defer close(drained); end.Drain(t.Context()) }()
	<-end.Begun
	if kept, closes := post(); !kept || !closes {
		t.Errorf("kept: %v, closes: %v", kept, closes)
	}
	<-drained
	end.Stop()
	if n := end.open.Load(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}
