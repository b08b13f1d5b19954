package httplimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRoom(t *testing.T) {
	room := NewRoom(100)
	a, b := Share{"a", 40}, Share{"b", 40}
	one := room.Hold(a)
	if err := one.Try(60); err != nil {
		t.Errorf("a single request that is larger than a share: %v", err)
	}
	if err := room.Hold(a).Try(1); err != ErrFull {
		t.Errorf("past the share: %v", err)
	}
	two := room.Hold(b)
	if err := two.Try(40); err != nil {
		t.Errorf("another one: %v", err)
	}
	if err := room.Hold(Share{"c", 40}).Try(1); err != ErrFull {
		t.Errorf("past all of it: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := room.Hold(a).Take(ctx, 1); err != ErrFull {
		t.Errorf("nobody waits any more: %v", err)
	}
	waited := make(chan error)
	three := room.Hold(a)
	go func() { waited <- three.Take(t.Context(), 30) }()
	one.Release()
	one.Release()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	two.Release()
	three.Release()
	if room.free != 100 || len(room.held) != 0 {
		t.Errorf("%d bytes are free, %v are held", room.free, room.held)
	}
}

func TestBody(t *testing.T) {
	var taken int64
	errTake := errors.New("no")
	o := BodyOptions{Limit: 100_000, Grace: time.Minute, PerSecond: 10 << 20, Within: 2 * time.Minute}
	o.Take = func(n int64) error {
		if taken += n; taken > 70_000 {
			return errTake
		}
		return nil
	}
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		taken = 0
		body, err := Body(w, r, o)
		got <- fmt.Sprint(len(body), " ", err)
	}))
	defer srv.Close()
	send := func(length int, text string) string {
		t.Helper()
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		head := fmt.Sprintf("Content-Length: %d", length)
		if length < 0 {
			head, text = "Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", head)
		go io.WriteString(conn, text)
		return <-got
	}
	for _, tt := range []struct {
		length int
		text   string
		want   string
	}{
		{3, "abc", "3 <nil>"},
		{0, "", "0 <nil>"},
		{-1, "abc", "3 <nil>"},
		{60_000, strings.Repeat("x", 60_000), "60000 <nil>"},
		{-1, strings.Repeat("x", 120_000), "0 no"},
		{90_000, strings.Repeat("x", 90_000), "0 no"},
		{90_000, "x", "0 the body comes in too slowly"}, // and took memory for no more than came
		{100_001, "x", "0 the body is too large"},
	} {
		if o.Grace = time.Minute; strings.HasSuffix(tt.want, "too slowly") {
			o.Grace = 50 * time.Millisecond
		}
		if got := send(tt.length, tt.text); got != tt.want {
			t.Errorf("%d of %d bytes: %s, want %s", len(tt.text), tt.length, got, tt.want)
		}
		if tt.text == "x" && taken > firstBytes {
			t.Errorf("one byte of %d has taken %d", tt.length, taken)
		}
	}
}
