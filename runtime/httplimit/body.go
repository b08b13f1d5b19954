// Package httplimit bounds what clients of our HTTP servers can hold: a body must come in
// at a minimum speed, takes memory only as it comes, and those who send many share that
// memory with others.
package httplimit

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Why a body was not read to its end.
var (
	ErrTooLarge = errors.New("the body is too large")
	ErrTooSlow  = errors.New("the body comes in too slowly")
	ErrCut      = errors.New("the body ends too early")
)

// BodyOptions bounds one body.
type BodyOptions struct {
	// Limit is how long it may be.
	Limit int64
	// Grace is how long a client may send nothing; from then on it must have sent
	// PerSecond bytes for each second.
	Grace     time.Duration
	PerSecond int64
	// Within bounds all of it.
	Within time.Duration
	// Take is called before the body takes so many bytes of memory more, and may wait:
	// that is not the client's time. Its error ends the reading.
	Take func(bytes int64) error
}

// firstBytes is what memory a body takes before anything of it has come.
const firstBytes = 16 << 10

// Body reads the body of a request. Memory is taken as it comes: what a client says of its
// length costs nothing.
func Body(w http.ResponseWriter, r *http.Request, o BodyOptions) ([]byte, error) {
	if r.ContentLength > o.Limit {
		return nil, ErrTooLarge
	}
	most := o.Limit + 1 // one byte too many shows that it is too large
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1
	}
	control := http.NewResponseController(w)
	began := time.Now()
	var body []byte
	for {
		if len(body) == cap(body) {
			asked := time.Now()
			grown := min(max(2*int64(cap(body)), firstBytes), most)
			if err := o.Take(grown - int64(cap(body))); err != nil {
				return nil, err
			}
			began = began.Add(time.Since(asked))
			body = append(make([]byte, 0, grown), body...)
		}
		allowed := o.Grace + time.Duration(float64(len(body))/float64(o.PerSecond)*float64(time.Second))
		_ = control.SetReadDeadline(began.Add(min(allowed, o.Within))) // a server in a test has none
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > o.Limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			_ = control.SetReadDeadline(time.Time{})
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, ErrTooSlow
		case err != nil:
			return nil, ErrCut
		}
	}
}

// Remote is the address that a request comes from, without its port.
func Remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
