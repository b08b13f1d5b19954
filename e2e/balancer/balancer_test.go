package balancer

import (
	"io"
	"net"
	"slices"
	"testing"
)

// says listens, and says a word to each connection.
func says(t *testing.T, word string) (address string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, word)
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

func TestConnectionsGoToEachInTurn(t *testing.T) {
	b, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	hear := func() string {
		conn, err := net.Dial("tcp", b.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text, _ := io.ReadAll(conn)
		return string(text)
	}
	if got := hear(); got != "" {
		t.Errorf("it leads to %q before it is told where", got)
	}
	b.Lead(says(t, "one"), says(t, "two"))
	got := []string{hear(), hear(), hear(), hear()}
	if slices.Sort(got); !slices.Equal(got, []string{"one", "one", "two", "two"}) {
		t.Errorf("got %q", got)
	}
}
