package httplimit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
)

// A client that opens many connections keeps no other one out, and costs no more than the connections that all may have.
func TestConnectionsAreBounded(t *testing.T) {
	const most = 8
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := Listener(inner, most).(*listener)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") })}
	ended := make(chan error)
	go func() { ended <- server.Serve(bounded) }()
	defer func() { server.Close(); <-ended }()
	dial := func(from string) net.Conn {
		t.Helper()
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	answers := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	var hog []net.Conn
	for range 3 * most {
		hog = append(hog, dial("127.0.0.1"))
	}
	for i, c := range hog {
		if err := answers(c); (err == nil) != (i < most) {
			t.Errorf("connection %d of the one that opens many: %v", i, err)
		}
	}
	var others []net.Conn
	for i := range most {
		c := dial(fmt.Sprintf("127.0.0.%d", 2+i%4))
		if err := answers(c); (err == nil) != (i < most-2) {
			t.Errorf("connection %d of others: %v", i, err)
		}
		others = append(others, c)
	}
	for i, c := range hog[:most] { // it keeps as many as each of the others has, the newest
		if err := answers(c); (err == nil) != (i >= most-2) {
			t.Errorf("connection %d of the one that has opened many: %v", i, err)
		}
	}
	for _, c := range append(hog, others...) {
		c.Close()
	}
	for answers(dial("127.0.0.1")) != nil { // the server sees the ends
	}
	bounded.mu.Lock()
	defer bounded.mu.Unlock()
	if bounded.n > most {
		t.Errorf("%d connections count", bounded.n)
	}
}
