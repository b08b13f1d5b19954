package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// stream is the body of a watch: JSON events, one a line. It is read by one
// goroutine, and closed by any.
type stream struct {
	request *request
	watcher *store.Watcher
	ctx     context.Context
	wake    chan struct{} // holds one wish to look again
	closed  chan struct{}
	once    sync.Once
	ends    <-chan time.Time
	marks   *time.Ticker // nil: no bookmarks
	left    []byte
	over    bool
}

func (q *request) watch() (*answer, error) {
	if err := q.checkList(true); err != nil {
		return nil, err
	}
	timeout, err := number(q.query, "timeoutSeconds")
	if err != nil {
		return nil, err
	}
	s := &stream{request: q, ctx: q.http.Context(), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	s.watcher, err = q.server.o.Store.Watch(q.target, store.WatchOptions{
		Selection: q.selection(), Version: q.query.Get("resourceVersion"), Initial: truth(q.query, "sendInitialEvents"),
		Notify: func() {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return nil, err
	}
	if timeout > 0 {
		s.ends = time.After(time.Duration(timeout) * time.Second)
	}
	if truth(q.query, "allowWatchBookmarks") {
		s.marks = time.NewTicker(q.server.o.Bookmarks)
	}
	return &answer{code: http.StatusOK, stream: s}, nil
}

// Read implements [io.Reader]: it waits for the next event.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.left) == 0 {
		if s.over {
			return 0, io.EOF
		}
		e, ok := s.watcher.Next()
		if err := s.ctx.Err(); err != nil { // else it might be of the time after that
			return 0, err
		}
		if ok {
			s.encode(e)
			continue
		}
		if !s.watcher.Served() {
			return 0, io.EOF
		}
		var marks <-chan time.Time
		if s.marks != nil {
			marks = s.marks.C
		}
		select {
		case <-s.wake:
		case <-marks:
			s.encode(s.watcher.Bookmark())
		case <-s.ends:
			s.over = true
		case <-s.closed:
			return 0, io.EOF
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *stream) encode(e store.Event) {
	obj := e.Object
	if e.Type == "ERROR" {
		s.over = true
	} else {
		obj = s.request.partial(obj)
	}
	text, err := json.Marshal(map[string]any{"type": e.Type, "object": obj})
	if err != nil {
		s.over = true
		return
	}
	s.left = append(text, '\n')
}

// Close implements [io.Closer]. A Read that waits ends.
func (s *stream) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.watcher.Stop()
		if s.marks != nil {
			s.marks.Stop()
		}
	})
	return nil
}
