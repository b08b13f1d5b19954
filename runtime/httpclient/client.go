// Package httpclient makes the HTTP requests of hooks, to the hosts that their modules
// list and to nowhere else.
//
// The list is checked three times: the host of the URL when a hook gives it, the host
// of each redirect, and, as a connection is made, the address that the name has led
// to. So a name cannot lead to an address of a private network that is not listed,
// however often its owner changes where it leads. Behind a proxy the first two checks
// hold, and the third is the proxy's. Connections are kept for requests with the same list
// and the same TLS, so none is used by a module for which it was not checked.
package httpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

const (
	// MaxAnswer is how large the body of an answer may be.
	MaxAnswer = 8 << 20
	// maxAnswerHeaders bounds its headers.
	maxAnswerHeaders = 64 << 10
	// maxRedirects is how many redirects are followed.
	maxRedirects = 5
)

// Options configures a [Client].
type Options struct {
	// UserAgent is what servers are told.
	UserAgent string
	// Resolver looks names up; nil means the system's way.
	Resolver *net.Resolver
	// Proxy chooses the proxy of a request, as [http.Transport] has it; nil: there is none.
	Proxy func(*http.Request) (*url.URL, error)
	// ReadOnly is for simulated clusters, such as that of a plan: requests of runs that are
	// none of GET, HEAD and OPTIONS have no answer.
	ReadOnly bool
}

// Client makes requests. It may be used by many goroutines.
type Client struct {
	o    Options
	kept transports
}

func New(o Options) *Client { return &Client{o: o} }

// RefusedError says that a request may not go where it leads. To try again is of no
// use.
type RefusedError struct {
	msg string
	// theirs says that the server has led there.
	theirs bool
}

// Error says where, and why not.
func (e *RefusedError) Error() string { return e.msg }

// StatusError is an answer that did not take a message.
type StatusError struct {
	Code int
	// RetryAfter is when the server wants to be asked again; 0: it did not say.
	RetryAfter time.Duration
}

// Error names the status.
func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answered %d %s", e.Code, http.StatusText(e.Code)))
}

// Permanent reports whether it is of no use to send a message again that has failed
// in this way.
func Permanent(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		switch status.Code {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return false
		}
		return status.Code < 500
	}
	return errors.As(err, new(*RefusedError))
}

// Send makes a request whose answer says no more than whether it was taken.
func (c *Client) Send(ctx context.Context, r effect.Request) error {
	return c.do(ctx, r, func(resp *http.Response) error {
		if resp.StatusCode/100 == 2 || resp.StatusCode == http.StatusSeeOther {
			return nil
		}
		return &StatusError{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	})
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(text string) time.Duration {
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	n, _ := strconv.ParseUint(text, 10, 64) // 0 for what is no number, the largest one for what is larger
	return time.Duration(min(n, 1<<30)) * time.Second
}

func (c *Client) do(ctx context.Context, r effect.Request, read func(*http.Response) error) error {
	within, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	err := c.try(within, r, read)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no whole answer within %s", r.Timeout)
	}
	return plain(err)
}

func (c *Client) try(ctx context.Context, r effect.Request, read func(*http.Response) error) error {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return &RefusedError{msg: "the URL cannot be used"}
	}
	if len(r.Body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.o.UserAgent)
	}
	if err := checkURL(req.URL, r.Hosts); err != nil {
		return err
	}
	transport, err := c.transport(r)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: transport, CheckRedirect: redirects(r)}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return read(resp)
}

// dialer connects to an address only if the list has it. The check is made for the
// address that the connection goes to, after the name was looked up. A proxy may have any.
func (c *Client) dialer(hosts effect.Hosts, via *proxies) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, &RefusedError{msg: "the host cannot be used"}
		}
		proxied := via.has(address)
		d := &net.Dialer{Resolver: c.o.Resolver, Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return &RefusedError{msg: "the address cannot be used"}
			}
			if !proxied && !hosts.AllowAddress(host, to.Addr(), to.Port()) {
				return &RefusedError{msg: fmt.Sprintf("%s leads to %s, which is no public address; add %q, or a range that holds it, to module(http = […]) if that is meant",
					host, to.Addr(), to.Addr())}
			}
			return nil
		}}
		return d.DialContext(ctx, network, address)
	}
}

// plain takes off an error what may tell of the URL or of what the server sent.
func plain(err error) error {
	var refused *RefusedError
	var status *StatusError
	var of *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &status):
		return status
	case errors.As(err, &of):
		err = of.Err
	}
	text := err.Error()
	for begins, said := range map[string]string{
		"failed to parse Location": "the server redirects to no URL",
		"malformed HTTP":           "the server does not answer in HTTP",
		"net/http: HTTP/1.x transport connection broken: malformed": "the server does not answer in HTTP",
		"http: server gave HTTP response to HTTPS client":           "the server speaks http, not https",
	} {
		if strings.HasPrefix(text, begins) {
			return errors.New(said)
		}
	}
	return errors.New(clip(strings.TrimPrefix(text, "net/http: ")))
}

// clip cuts what others may have made long.
func clip(s string) string { return strings.ToValidUTF8(message.Clean(message.Cut(s, 300)), "") }
