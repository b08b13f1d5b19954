package proxy

import (
	"slices"
	"testing"
	"time"
)

// The process is killed at the write that is asked for, before or after that has reached the server, and what
// comes from it later does not.
func TestKiller(t *testing.T) {
	const (
		secret = "/api/v1/namespaces/a/secrets/sh.helm.release.v1.web.v"
		lease  = "/apis/coordination.k8s.io/v1/namespaces/a/leases/x"
	)
	s, p, ask := behind(t, 1)
	ends := 0
	k := &Killer{}
	p.Inject(k.Fault(func() { ends++ }))
	reached := func(method, path string) bool {
		t.Helper()
		before := s.asked.Load()
		_ = text(ask(method, path))
		return s.asked.Load() > before
	}
	if before := k.KillAt(2, false, func() {}); before != 0 {
		t.Errorf("%d were killed", before)
	}
	for _, c := range []struct {
		method, path string
		reaches      bool
		killed       int
	}{{"PUT", secret + "1", true, 0}, {"PUT", lease, true, 0}, {"GET", secret + "1", true, 0}, {"DELETE", secret + "1", false, 1}, {"DELETE", secret + "1", true, 1}} {
		if got := reached(c.method, c.path); got != c.reaches || ends != c.killed {
			t.Errorf("%s %s: %t, %d killed", c.method, c.path, got, ends)
		}
	}
	if k.Written() != 3 || k.Spare() != 1 || k.Written() != 0 || k.Rests(time.Hour) == nil || k.Rests(0) != nil {
		t.Error(k.Written(), k.Killed(), k.Rests(time.Hour), k.Rests(0))
	}

	known := map[string]bool{"PUT secrets/sh.helm.release.v1.web 1": true}
	k.KillNew(known, true, func() {})
	if !reached("PUT", secret+"2") || ends != 1 {
		t.Error("it was killed at a write that is known")
	}
	if !reached("PUT", secret+"3") || ends != 2 || !known["PUT secrets/sh.helm.release.v1.web 2"] || !reached("PUT", secret+"4") || ends != 2 {
		t.Errorf("%d were killed; %v", ends, known)
	}
	if got := k.Keys(); !slices.Equal(got, []string{"PUT secrets/sh.helm.release.v1.web 1", "PUT secrets/sh.helm.release.v1.web 2"}) {
		t.Error(got)
	}
	if got := k.At(); !slices.Equal(got, []string{"DELETE secrets/sh.helm.release.v1.web", "PUT secrets/sh.helm.release.v1.web"}) {
		t.Error(got)
	}
}

// A write that does not count passes, and the process is killed once it is at rest.
func TestKillerThatWaits(t *testing.T) {
	s, p, ask := behind(t, 1)
	rest, ended := 0, false
	k := &Killer{
		Counts: func(path string) bool { return path == "/api/v1/nodes" },
		AtRest: func() bool { rest++; return rest == 3 },
	}
	p.Inject(k.Fault(func() { ended = true }))
	k.KillAt(1, false, func() {})
	for _, path := range []string{"/api/v1/pods", "/api/v1/nodes"} {
		_ = text(ask("DELETE", path))
	}
	if s.asked.Load() != 1 || !ended || rest != 3 {
		t.Error(s.asked.Load(), ended, rest)
	}
}
