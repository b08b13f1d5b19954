package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/tlsfiles"
)

// A process that stands by asks the one that leads about hooks that it does not have, and nobody else.
func TestReviewsOfUnknownHooksAreForwarded(t *testing.T) {
	denies := func(_ context.Context, hook string, r *builtins.Request) (builtins.Response, error) {
		return builtins.Response{Denied: &builtins.Denial{Message: "by " + hook}}, nil
	}
	leads, stands := newTestServer(t, denies), newTestServer(t, denies)
	trusted := leads.rotate(time.Now())
	stands.setRoutes(map[string]route{"/validate/web/b/v": {module: "web", hook: "web/b", binding: "v"}})
	leader := leads.addr
	forwardTo := func(s *testServer, name string, bundle []byte) {
		s.forwarder = newForwarder(func() string { return leader }, name)
		s.forwarder.trust(bundle)
		t.Cleanup(s.forwarder.client.CloseIdleConnections)
	}
	forwardTo(stands, "starling.ns.svc", trusted.bundle)
	c := stands.client(stands.rotate(time.Now()).bundle)
	ask := func(path string, code int, says string) {
		t.Helper()
		got, text, err := stands.post(c, path, reviewBody)
		if err != nil || got != code || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s %v, want %d %s", path, got, text, err, code, says)
		}
	}
	ask("/validate/web/b/v", 200, "by web/b")
	ask("/validate/web/a/v?timeout=5s", 200, "by web/a")
	ask("/validate/web/other/v", 404, "starling: no hook answers here")
	ask("/metrics", 404, "no hook answers here")
	if len(stands.seen) != 1 || len(leads.seen) != 1 {
		t.Errorf("observed here: %+v, there: %+v", stands.seen, leads.seen)
	}

	// One that was handed on goes no further, and one that comes to a process that leads goes nowhere.
	leads.setRoutes(map[string]route{})
	forwardTo(leads, "starling.ns.svc", trusted.bundle)
	ask("/validate/web/a/v", 404, "no hook answers here")
	leader = ""
	ask("/validate/web/a/v", 404, "no hook answers here")

	// Another server at that address is not asked, nor one that is not there.
	leader = leads.addr
	forwardTo(stands, "starling.other.svc", trusted.bundle)
	ask("/validate/web/a/v", 502, "the one that holds the lease gives no answer")
	other := own(&memory{})
	theirs, err := other.look(t.Context(), time.Now(), true)
	if err != nil {
		t.Fatal(err)
	}
	forwardTo(stands, "starling.ns.svc", theirs.bundle)
	ask("/validate/web/a/v", 502, "the one that holds the lease gives no answer")
	leader = "127.0.0.1:1"
	ask("/validate/web/a/v", 502, "the one that holds the lease gives no answer")
}

// Where the API server must show a certificate, nobody can ask in its place; for conversions it shows none.
func TestReviewsThatNeedACertificateAreNotForwarded(t *testing.T) {
	s := newTestServer(t, nil)
	s.clients = &tlsfiles.Authorities{}
	s.forwarder = newForwarder(func() string { return "127.0.0.1:1" }, "starling.ns.svc")
	for path, want := range map[string]bool{"/validate/web/x/v": false, "/mutate/web/x/m": false, "/convert/web/x/c": true} {
		r, err := http.NewRequest(http.MethodPost, path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if to, known := s.elsewhere(r); known != want || known && !to.convert {
			t.Errorf("%s: %+v, %t", path, to, known)
		}
	}
}

// A hook that fails in a process that stands by is asked in the one that leads, too: so its status shows that. 1,000
// requests that fail are one there, and it hears once that the hook is well again.
func TestFailuresOfAStandbyReachTheLeader(t *testing.T) {
	fails, failsThere := true, true
	answer := func(fails *bool) Answer {
		return func(context.Context, string, *builtins.Request) (builtins.Response, error) {
			if *fails {
				return builtins.Response{}, errors.New("boom")
			}
			return builtins.Response{Denied: &builtins.Denial{Message: "by the hook"}}, nil
		}
	}
	leads, stands := newTestServer(t, answer(&failsThere)), newTestServer(t, answer(&fails))
	trusted := leads.rotate(time.Now())
	leader := leads.addr
	stands.forwarder = newForwarder(func() string { return leader }, "starling.ns.svc")
	stands.forwarder.trust(trusted.bundle)
	t.Cleanup(stands.forwarder.client.CloseIdleConnections)
	c := stands.client(stands.rotate(time.Now()).bundle)
	ask := func(times, code int, says string) {
		t.Helper()
		for range times {
			if got, text, err := stands.post(c, "/validate/web/a/v", reviewBody); err != nil || got != code || !strings.Contains(text, says) {
				t.Errorf("%d %s %v, want %d %s", got, text, err, code, says)
			}
		}
	}
	there := func(want ...string) {
		t.Helper()
		var got []string
		for _, o := range leads.seen {
			got = append(got, o.Result)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the one that leads has answered %q, want %q", got, want)
		}
	}
	ask(20, 500, "boom")
	there("error")
	fails, failsThere = false, false
	ask(20, 200, "by the hook")
	there("error", "denied")

	// The answer of the one that leads counts where there is none.
	fails = true
	ask(1, 200, "by the hook")
	if last := stands.seen[len(stands.seen)-1]; last.Result != "error" {
		t.Errorf("here: %+v", last)
	}
	leader = "" // this one leads: nobody else is asked
	ask(1, 500, "boom")
	there("error", "denied", "denied")
}
