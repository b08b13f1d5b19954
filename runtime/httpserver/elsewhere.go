package httpserver

import (
	"errors"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/httplimit"
)

// The tree of a process that stands by may be older than that of the one that leads, for a while. A request for a path
// that no hook of it has goes to the process that leads.

// maxStrange is how many such requests are under way at once: nothing says that their senders are known to anybody.
const maxStrange = 64

// ErrNoPath says that no hook has the path of a request.
var ErrNoPath = errors.New("no hook receives requests here")

// strange is the route of all paths that no hook of this process has.
func strange() *route {
	return &route{decl: &builtins.ReceiveBinding{MaxBytes: builtins.MaxReceiveBytes}, troubles: rate.Sometimes{First: 1, Interval: time.Minute}}
}

// handOn has the process that leads answer a request that no hook of this process can. Nothing is checked here: this
// process does not know how it is signed.
func (s *Server) handOn(w http.ResponseWriter, r *http.Request) (*builtins.Reply, error) {
	if r.Header.Get(forwardedHeader) != "" || !s.o.Stands() {
		return nil, ErrNoPath
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, httplimit.ErrFull
	}
	hold := s.held.Hold(httplimit.Share{Of: "other paths", Most: maxHeld / 4}, httplimit.Share{Of: "client " + httplimit.Remote(r), Most: maxHeld / 2})
	end := func(bool) {
		hold.Release()
		<-s.slots
	}
	body, err := s.read(w, r, s.strange, hold)
	if err != nil {
		end(false)
		return nil, err
	}
	return s.answer(Incoming{HTTP: r, Body: body}, end)
}

// read reads the body of a request, as far as there is room for it.
func (s *Server) read(w http.ResponseWriter, r *http.Request, to *route, hold *httplimit.Hold) ([]byte, error) {
	return httplimit.Body(w, r, httplimit.BodyOptions{
		Limit: int64(to.decl.MaxBytes), Grace: readGrace, PerSecond: readPace, Within: readWithin, Take: hold.Try,
	})
}
