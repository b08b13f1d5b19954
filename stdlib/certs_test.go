package stdlib

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/script"
)

// oneSecret is a cluster with one Secret, and a clock.
type oneSecret struct {
	t      *testing.T
	host   *script.Host
	now    time.Time
	random *rand.ChaCha8
	secret map[string]any // nil: not there
	writes int
}

func newOneSecret(t *testing.T) *oneSecret {
	s := &oneSecret{t: t, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), random: rand.NewChaCha8([32]byte{1})}
	loading := &builtins.Context{Phase: spec.InLoad, Log: noLog{}}
	s.host = script.New(script.Options{Std: FS, Context: func(string) *builtins.Context { return loading }})
	return s
}

func (s *oneSecret) Get(_ context.Context, ref effect.Ref) (map[string]any, error) {
	if ref.Name == "web-tls" && ref.Namespace == "web" {
		return s.secret, nil
	}
	return nil, nil
}

func (s *oneSecret) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return nil, errors.New("nobody lists")
}

// made is what a call of ensure returned, and what the Secret holds since.
type made struct {
	requeue  time.Duration
	ca, cert string
	data     map[string]string
}

// ensure calls it once, and carries its effects out.
func (s *oneSecret) ensure(args ...any) (made, error) {
	s.t.Helper()
	globals, err := s.host.Load(s.t.Context(), "@std//certs.star")
	if err != nil {
		s.t.Fatal(err)
	}
	run := &builtins.Run{
		Module: "web", Hook: "h", Namespace: "web", Now: s.now, Random: s.random, Reader: s,
		Grants: []builtins.Grant{{APIVersion: "v1", Kind: "Secret", Verbs: []string{"get", "apply"}}},
	}
	kwargs := []any{"secret", starlark.String("web-tls"), "dns", list("web", "web.web.svc"), "days", starlark.MakeInt(90)}
	v, _, err := s.host.Call(s.t.Context(), partial(globals["ensure"], append(kwargs, args...)), nil, script.CallOptions{
		Context: &builtins.Context{Phase: spec.InRun, Log: noLog{}, Run: run},
	})
	if err != nil {
		return made{}, err
	}
	for _, w := range run.Effects.Writes {
		if w.Kind != effect.WriteApply || w.Ref.Kind != "Secret" || w.Ref.Name != "web-tls" {
			s.t.Fatalf("wrote %+v", w)
		}
		s.secret = w.Object
		s.writes++
	}
	attr := func(name string) string {
		x, err := v.(starlark.HasAttrs).Attr(name)
		if err != nil {
			s.t.Fatal(err)
		}
		text, _ := starlark.AsString(x)
		return text
	}
	if strings.Contains(v.String(), "PRIVATE KEY") || attr("secret") != "web-tls" {
		s.t.Errorf("returned %s", v)
	}
	out := made{requeue: run.Effects.Requeue, ca: attr("ca"), cert: attr("cert"), data: map[string]string{}}
	for k, v := range s.secret["data"].(map[string]any) {
		text, err := base64.StdEncoding.DecodeString(v.(string))
		if err != nil {
			s.t.Fatal(err)
		}
		out.data[k] = string(text)
	}
	return out, nil
}

// must is ensure without an error; what it returns and what the Secret holds agree.
func (s *oneSecret) must(args ...any) made {
	s.t.Helper()
	m, err := s.ensure(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	if m.ca != m.data["ca.crt"] || m.cert != m.data["tls.crt"] {
		s.t.Error("what it returned is not in the Secret")
	}
	if !s.good(m.data["tls.crt"], m.data["tls.key"], m.ca) {
		s.t.Error("those who trust ca.crt refuse what is served")
	}
	if s.secret["type"] != "kubernetes.io/tls" {
		s.t.Errorf("the type is %v", s.secret["type"])
	}
	return m
}

func (s *oneSecret) good(cert, key, ca string) bool {
	verify := builtins.Predeclared()["tls"].(starlark.HasAttrs)
	fn, err := verify.Attr("verify")
	if err != nil {
		s.t.Fatal(err)
	}
	thread := &starlark.Thread{}
	builtins.Attach(thread, &builtins.Context{Phase: spec.InRun, Log: noLog{}, Run: &builtins.Run{Now: s.now}})
	ok, err := starlark.Call(thread, fn, starlark.Tuple{starlark.String(cert), starlark.String(ca), starlark.String(key)}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return bool(ok.Truth())
}

// steps says in short what the Secret holds.
func (m made) steps() string {
	return fmt.Sprintf("%d authorities, next %v", strings.Count(m.ca, "BEGIN"), m.data["next.crt"] != "")
}

func list(texts ...string) starlark.Value {
	l := make([]starlark.Value, len(texts))
	for i, t := range texts {
		l[i] = starlark.String(t)
	}
	return starlark.NewList(l)
}

// partial calls fn with keyword arguments; of two of one name the later counts.
func partial(fn starlark.Value, pairs []any) starlark.Callable {
	named := map[string]starlark.Value{}
	var kwargs []starlark.Tuple
	for i := 0; i < len(pairs); i += 2 {
		named[pairs[i].(string)] = pairs[i+1].(starlark.Value)
	}
	for name, v := range named {
		kwargs = append(kwargs, starlark.Tuple{starlark.String(name), v})
	}
	return starlark.NewBuiltin("test", func(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return starlark.Call(t, fn, nil, kwargs)
	})
}

// The life of a certificate: made once, left alone, renewed in three steps. All along,
// those who have the bundle of one step before, or of now, trust what is served now and
// what was served one step before.
func TestCertificateIsRenewedInSteps(t *testing.T) {
	s := newOneSecret(t)
	const day = 24 * time.Hour
	first := s.must()
	if got := first.steps(); got != "1 authorities, next false" || first.requeue != 60*day {
		t.Errorf("at first: %s, again in %s", got, first.requeue)
	}
	for _, wait := range []time.Duration{0, time.Minute, 59 * day} {
		s.now = s.now.Add(wait)
		if m := s.must(); s.writes != 1 || m.cert != first.cert || m.requeue > 60*day {
			t.Fatalf("%d writes, again in %s", s.writes, m.requeue)
		}
	}
	last := first
	for i, step := range []struct {
		wait   time.Duration
		want   string
		same   bool // as in the step before
		again  time.Duration
		writes int
	}{
		{day, "2 authorities, next true", true, 10 * time.Minute, 2},
		{4 * time.Minute, "2 authorities, next true", true, 6 * time.Minute, 2},
		{6 * time.Minute, "2 authorities, next false", false, 10 * time.Minute, 3},
		{0, "2 authorities, next false", true, 10 * time.Minute, 3},
		{10 * time.Minute, "1 authorities, next false", true, 60*day - 20*time.Minute, 4},
		{time.Hour, "1 authorities, next false", true, 60*day - 80*time.Minute, 4},
	} {
		s.now = s.now.Add(step.wait)
		m := s.must()
		if m.steps() != step.want || (m.cert == last.cert) != step.same || m.requeue != step.again || s.writes != step.writes {
			t.Errorf("step %d: %s, the same certificate: %v, again in %s, %d writes", i, m.steps(), m.cert == last.cert, m.requeue, s.writes)
		}
		if !s.good(m.cert, m.data["tls.key"], last.ca) || !s.good(last.cert, last.data["tls.key"], m.ca) {
			t.Errorf("step %d: somebody who has not seen it yet is refused", i)
		}
		last = m
	}
	if last.cert == first.cert {
		t.Error("the certificate is the old one")
	}
}

// A step that comes late, because nobody was there, is a step still.
func TestLateStepsAreNotLeftOut(t *testing.T) {
	s := newOneSecret(t)
	s.must()
	s.now = s.now.Add(70 * 24 * time.Hour)
	s.must()
	s.now = s.now.Add(10 * 24 * time.Hour)
	if m := s.must(); m.steps() != "2 authorities, next false" {
		t.Errorf("got %s", m.steps())
	}
	if m := s.must(); m.steps() != "2 authorities, next false" || m.requeue != 10*time.Minute {
		t.Errorf("the old authority is gone at once: %s", m.steps())
	}
}

// A certificate that cannot serve any more is made anew at once.
func TestCertificateThatIsNoGoodIsMadeAnew(t *testing.T) {
	set := func(key, text string) func(*oneSecret) {
		return func(s *oneSecret) {
			s.secret["data"].(map[string]any)[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	for name, breakIt := range map[string]func(*oneSecret){
		"gone":         func(s *oneSecret) { s.secret = nil },
		"empty":        func(s *oneSecret) { delete(s.secret, "data") },
		"no key":       func(s *oneSecret) { delete(s.secret["data"].(map[string]any), "tls.key") },
		"broken":       set("tls.crt", "-----BEGIN CERTIFICATE-----\n"),
		"no text":      set("ca.crt", "\xff\x00"),
		"other key":    set("tls.key", "x"),
		"ended":        func(s *oneSecret) { s.now = s.now.Add(100 * 24 * time.Hour) },
		"broken, long": func(s *oneSecret) { set("tls.crt", "x")(s); s.now = s.now.Add(70 * 24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newOneSecret(t)
			before := s.must()
			breakIt(s)
			if m := s.must(); s.writes != 2 || m.steps() != "1 authorities, next false" || m.cert == before.cert {
				t.Errorf("%d writes, %s", s.writes, m.steps())
			}
		})
	}
}

// While a new certificate waits, the old one may end, or the new one be broken.
func TestCertificateThatWaitsMeetsTrouble(t *testing.T) {
	waiting := func(t *testing.T) (*oneSecret, made) {
		s := newOneSecret(t)
		s.must()
		s.now = s.now.Add(70 * 24 * time.Hour)
		return s, s.must()
	}
	s, before := waiting(t)
	s.now = s.now.Add(25 * 24 * time.Hour) // the old one has ended
	if m := s.must(); m.cert != before.data["next.crt"] || m.steps() != "1 authorities, next false" {
		t.Errorf("the one that waited is not taken: %s", m.steps())
	}
	s, before = waiting(t)
	s.secret["data"].(map[string]any)["next.key"] = "eA=="
	if m := s.must(); m.cert != before.cert || m.data["next.crt"] == before.data["next.crt"] || m.steps() != "2 authorities, next true" {
		t.Errorf("a broken one is not replaced: %s", m.steps())
	}
	s, before = waiting(t)
	if m := s.must("dns", list("other")); m.cert != before.cert || m.data["next.crt"] == before.data["next.crt"] {
		t.Errorf("one for other names is not replaced: %s", m.steps())
	}
	s, _ = waiting(t) // a time that somebody has broken is long ago
	for _, text := range []string{"soon", "2026-02-30T25:00:00Z"} {
		s.secret["metadata"].(map[string]any)["annotations"].(map[string]any)["starling.dev/certificate-changed"] = text
		s.must()
	}
}

func TestChangedNames(t *testing.T) {
	s := newOneSecret(t)
	first := s.must()
	if m := s.must("dns", list("web.web.svc", "web")); s.writes != 1 || m.cert != first.cert {
		t.Error("another order is a change")
	}
	ips := []any{"dns", list("web"), "ips", list("::0001", "10.0.0.1")}
	if m := s.must(ips...); m.steps() != "2 authorities, next true" || m.cert != first.cert || m.requeue != 10*time.Minute {
		t.Errorf("got %s", m.steps())
	}
	s.now = s.now.Add(time.Hour)
	s.must(ips...)
	s.now = s.now.Add(time.Hour)
	m := s.must(ips...)
	if writes := s.writes; m.steps() != "1 authorities, next false" || m.cert == first.cert || s.must(ips...).cert != m.cert || s.writes != writes {
		t.Errorf("got %s", m.steps())
	}
}

func TestEnsureErrors(t *testing.T) {
	pair := starlark.Tuple{starlark.String("web-tls"), starlark.String("kube-system")}
	for _, tt := range []struct {
		args []any
		want string
	}{
		{[]any{"secret", pair}, `may not get Secret kube-system/web-tls`},
		{[]any{"days", starlark.MakeInt(0)}, "ensure: days: 0 is no number of days"},
		{[]any{"days", starlark.String("9")}, `ensure: days: "9" is no number of days`},
		{[]any{"renew_before", starlark.String("2160h")}, "ensure: renew_before is 2160h0m0s: it must be longer than the overlap, 10m0s, and leave as much of the 90 days"},
		{[]any{"renew_before", starlark.MakeInt(5)}, "ensure: renew_before is 5s"},
		{[]any{"renew_before", starlark.String("soon")}, "time.parse_duration"},
		{[]any{"dns", starlark.String("No Name")}, "tls.cert: dns: element 0"},
		{[]any{"dns", list()}, "it would be for nobody"},
	} {
		s := newOneSecret(t)
		if _, err := s.ensure(tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) || s.writes != 0 {
			t.Errorf("%v: got %v", tt.args, err)
		}
	}
	s := newOneSecret(t)
	s.secret = map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web-tls"}}
	if _, err := s.ensure(); err == nil || !strings.Contains(err.Error(), "Secret web-tls is there, and ensure did not make it") {
		t.Errorf("got %v", err)
	}
}
