package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/object"
)

// beside is another process on the same API server, with the same tree, that stands by.
func (w *world) beside() *world {
	return &world{t: w.t, api: w.api, client: w.client, gen: w.gen, standby: true}
}

// serves says why the other one does not serve the certificate of this one.
func (w *world) serves(other *world) func() error {
	return func() error {
		here, there := w.manager.server.cert.Load(), other.manager.server.cert.Load()
		if here == nil || !here.same(there) {
			return errors.New("the certificates differ")
		}
		return nil
	}
}

// published says which watch of this process lacks the authorities that the Secret has: some object does not
// have them, or the watch has not seen that it has.
func (w *world) published() error {
	secret := w.api.Object("v1", "Secret", "ns", "starling-webhooks")
	if secret == nil {
		return errors.New("there is no Secret")
	}
	bundle := secret["data"].(map[string]any)[keyBundle].(string)
	for _, id := range []string{watchValidating, watchMutating, watchDefinitions} {
		for _, v := range w.manager.watches.Snapshot(id) {
			if !strings.Contains(fmt.Sprint(v.(*object.Object).Map()), "caBundle:"+bundle) {
				return errors.New(id)
			}
		}
	}
	return nil
}

// A manager that stands by answers with the certificates of the one that leads, those that come
// later among them, and writes nothing before it leads itself.
func TestAStandbyAnswersAndWritesNothing(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
	putDefinition(w, nil)
	second := w.beside()
	var ahead atomic.Int64 // of the clock of the second, in nanoseconds
	second.run(func(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) } })
	second.serve("web", true)
	second.eventually("it has looked for certificates", func() error {
		if w.api.Count("get secrets") == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	second.eventually("it is ready while nobody is asked", func() error {
		if !second.manager.Ready() {
			return errors.New("not yet")
		}
		return nil
	})
	if got := writes(w.api); len(got) > 0 {
		t.Errorf("it has written %v", got)
	}

	w.run()
	w.serve("web", true)
	ahead.Store(int64(time.Hour)) // it looks no more than once in a while
	w.eventually("both serve the same", second.serves(w))
	w.eventually("the second is ready", func() error {
		if !second.manager.Ready() {
			return errors.New("not yet")
		}
		return nil
	})
	if diff := cmp.Diff(*w.manager.server.routes.Load(), *second.manager.server.routes.Load(), cmp.AllowUnexported(route{})); diff != "" {
		t.Errorf("routes (-leads +stands by):\n%s", diff)
	}

	// Another process has lost the Secret, and makes new certificates.
	w.stop()
	w.api.Remove("v1", "Secret", "ns", "starling-webhooks")
	before := second.manager.server.cert.Load()
	ahead.Store(int64(2 * time.Hour))
	w.run()
	w.serve("web", true)
	w.eventually("both serve the new one", second.serves(w))
	w.eventually("the second sees its authorities in all objects", second.published) // or it would have to write them
	if before.same(second.manager.server.cert.Load()) {
		t.Error("it is the certificate from before")
	}
	w.stop()

	// The second one leads: mistakes are mended.
	n := len(writes(w.api))
	w.api.Remove(registration, kindValidating, "", validating)
	second.manager.Lead(t.Context())
	second.serve("web", true) // as it has said before: nothing of it is registered by that alone
	second.eventually("mended", func() error {
		if slices.Contains(second.names(), validating) {
			return nil
		}
		return fmt.Errorf("there are %q", second.names())
	})
	if got := writes(w.api)[n:]; len(got) != 1 {
		t.Errorf("it has written %v", got)
	}
}

// While the API server asks, a manager without a certificate is not ready.
func TestAStandbyThatIsAskedNeedsACertificate(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
	putDefinition(w, nil)
	w.run()
	w.serve("web", true)
	w.eventually("registered", func() error {
		if len(w.names()) < 2 {
			return fmt.Errorf("there are %q", w.names())
		}
		return nil
	})
	w.stop()
	w.api.Remove("v1", "Secret", "ns", "starling-webhooks")
	second, looked := w.beside(), w.api.Count("get secrets")
	second.run()
	second.serve("web", true)
	second.eventually("it has looked for certificates", func() error {
		if w.api.Count("get secrets") == looked {
			return errors.New("not yet")
		}
		return nil
	})
	answer := second.asks()
	if second.manager.Ready() {
		t.Error("ready without a certificate")
	}
	second.stop() // whoever waits does not hold it up
	if err := <-answer; err == nil {
		t.Error("the review is answered")
	}
}

// review asks this process for a review, without a look at its certificate.
func (w *world) review() error {
	address, listens := w.manager.server.address.Load().(string)
	if !listens {
		return errors.New("it does not listen")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Post("https://"+address+"/validate/web/a.f/validate", "application/json", strings.NewReader(reviewBody))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"allowed":true`) {
		return fmt.Errorf("%d: %s, %w", resp.StatusCode, body, err)
	}
	return nil
}

// asks has a client ask this process, which has no certificate; the answer comes later.
func (w *world) asks() <-chan error {
	w.t.Helper()
	w.eventually("it listens", func() error {
		if w.manager.server.address.Load() == nil {
			return errors.New("not yet")
		}
		return nil
	})
	answer := make(chan error, 1)
	go func() { answer <- w.review() }()
	w.eventually("it waits for a certificate", func() error {
		if w.manager.server.waiting.Load() == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	return answer
}

// A review that comes to a manager that stands by before the first certificate is made waits for it, also when its
// module is not on here yet.
func TestAReviewWaitsForTheFirstCertificate(t *testing.T) {
	for name, on := range map[string]bool{"on": true, "not on yet": false} {
		w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
		putDefinition(w, nil)
		second := w.beside()
		second.prepare = func(m *Manager) { // whoever asks waits for as long as this machine takes
			m.server.patience, m.server.http.ReadHeaderTimeout, m.server.http.ReadTimeout = 2*time.Minute, 2*time.Minute, 2*time.Minute
			m.server.http.WriteTimeout = 2 * time.Minute
		}
		second.run()
		if on {
			second.serve("web", true)
		}
		answer := second.asks()
		second.eventually(name+": it is ready, as nobody is told to ask", func() error {
			if !second.manager.Ready() {
				return errors.New("not yet")
			}
			return nil
		})
		if !on {
			second.serve("web", true)
		}
		w.run()
		w.serve("web", true)
		if err := <-answer; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		second.stop()
		w.stop()
	}
}

// A tree that is asked nothing needs no certificate and no port.
func TestAStandbyThatIsAskedNothing(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": "def f(ctx):\n    pass\nhook(f, on = [startup])\n"}).beside()
	w.run()
	w.eventually("ready", func() error {
		if !w.manager.Ready() {
			return errors.New("not yet")
		}
		return nil
	})
	w.stop()
	if got := w.api.Requests(); len(got) > 0 {
		t.Errorf("it has asked for %v", got)
	}
}

// A manager that leads again begins as one that leads for the first time, though it has not looked in between.
func TestALeaderThatLeadsAgainBeginsAnew(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": "def f(ctx):\n    pass\nhook(f, on = [startup])\n"})
	w.run()
	swept := func(times int) func() error {
		return func() error {
			if n := w.api.Count("list mutatingwebhookconfigurations"); n < times {
				return fmt.Errorf("%d lists", n)
			}
			return nil
		}
	}
	w.eventually("it takes away what nobody wants", swept(1))
	w.manager.leads.Store(nil) // another process leads
	w.manager.Lead(t.Context())
	w.manager.TakeAway()
	w.eventually("it does so again", swept(2))
}

// A process that stands by and is asked nothing any more goes on to serve the certificate of the one that leads: the
// date of an old one would be an alert.
func TestAStandbyIsAskedNothingAnyMore(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
	putDefinition(w, nil)
	second := w.beside()
	var ahead atomic.Int64 // of the clock of the second, in nanoseconds
	var ends atomic.Pointer[time.Time]
	second.run(func(o *Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		o.Expires = func(at time.Time) { ends.Store(&at) }
	})
	w.run()
	w.serve("web", true)
	second.serve("web", true)
	ahead.Store(int64(time.Hour))
	w.eventually("both serve the same", second.serves(w))

	none := newWorld(t, map[string]string{"web/hooks/a.star": "def f(ctx):\n    pass\nhook(f, on = [startup])\n"}).gen
	second.manager.Use(none)
	w.stop()
	w.api.Remove("v1", "Secret", "ns", "starling-webhooks")
	ahead.Store(int64(2 * time.Hour))
	w.run()
	w.serve("web", true)
	w.eventually("both serve the new one", func() error {
		second.manager.Wake()
		return second.serves(w)()
	})
	if at := ends.Load(); at == nil || !at.Equal(second.manager.server.cert.Load().ends()) {
		t.Errorf("it says that its certificate ends at %v", at)
	}
	w.stop()
	second.stop()
}
