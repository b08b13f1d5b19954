package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// tooLarge is the error of what has more bytes than that.
type tooLarge int64

func (t tooLarge) Error() string { return fmt.Sprintf("it is larger than %d MiB", int64(t)>>20) }

// limited ends requests with ctx, whatever their own context is: Helm's client of registries takes
// none. It bounds their answers: left is what all of them together may still have.
type limited struct {
	ctx  context.Context
	base http.RoundTripper
	max  int64
	left *atomic.Int64
}

func (l limited) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(l.ctx, cancel)
	end := func() { stop(); cancel() }
	resp, err := l.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &body{resp.Body, l.max, l.left, end}
	return resp, nil
}

// body is an answer that counts.
type body struct {
	io.ReadCloser
	max  int64
	left *atomic.Int64
	end  func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), max(b.left.Load(), 0)+1)])
	if b.left.Add(-int64(n)) < 0 {
		return 0, tooLarge(b.max)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
