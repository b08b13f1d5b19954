package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

var _ builtins.Fetcher = (*Client)(nil)

// maxTogether is how large the bodies of answers that are gathered may be together.
const maxTogether = 64 << 20

// Gather implements [builtins.Fetcher].
func (c *Client) Gather(ctx context.Context, requests []effect.Request, parallel int) []builtins.Gathered {
	out := make([]builtins.Gathered, len(requests))
	left := &atomic.Int64{}
	left.Store(maxTogether)
	next := atomic.Int64{}
	var workers sync.WaitGroup
	for range min(max(parallel, 1), len(requests)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				out[i].Fetched, out[i].Err = c.fetch(ctx, requests[i], left)
			}
		})
	}
	workers.Wait()
	return out
}

// Fetch makes a request and returns the answer, whatever its status. Errors tell of
// the request no more than its host. Those of the server, or of the way there, are
// [builtins.NoAnswerError].
func (c *Client) Fetch(ctx context.Context, r effect.Request) (builtins.Fetched, error) {
	got := c.Gather(ctx, []effect.Request{r}, 1)[0]
	return got.Fetched, got.Err
}

// fetch takes what it reads from left, which others use, too.
func (c *Client) fetch(ctx context.Context, r effect.Request, left *atomic.Int64) (builtins.Fetched, error) {
	if c.o.ReadOnly && !r.Reads && !slices.Contains(builtins.ReadMethods, r.Method) {
		return builtins.Fetched{}, &builtins.NoAnswerError{
			Reason: "only GET, HEAD and OPTIONS requests, and those with reads = True, leave a simulated cluster",
		}
	}
	most := MaxAnswer
	if r.MaxBytes > 0 {
		most = r.MaxBytes
	}
	var out builtins.Fetched
	err := c.do(ctx, r, func(resp *http.Response) error {
		body, err := io.ReadAll(io.LimitReader(together{resp.Body, left}, int64(most)+1))
		if err != nil {
			return err
		}
		if len(body) > most {
			return fmt.Errorf("the answer is larger than %s", bytesText(most))
		}
		out = builtins.Fetched{Status: resp.StatusCode, Body: body, Headers: map[string]string{}}
		for name, values := range resp.Header {
			out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
		return nil
	})
	var refused *RefusedError
	if err != nil && ctx.Err() == nil && (!errors.As(err, &refused) || refused.theirs) {
		err = &builtins.NoAnswerError{Reason: err.Error()}
	}
	return out, err
}

// together reads a body that counts against what all may have.
type together struct {
	io.Reader
	left *atomic.Int64
}

// Read implements [io.Reader].
func (t together) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if t.left.Add(-int64(n)) < 0 {
		return 0, fmt.Errorf("the answers are larger than %s together", bytesText(maxTogether))
	}
	return n, err
}

// bytesText is a number of bytes for people: "8 MiB", "1000 bytes".
func bytesText(n int) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
