package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpclient"
)

// post is a fake world outside, and an outbox that speaks to it.
type post struct {
	t       *testing.T
	box     *outbox
	metrics *Metrics
	began   time.Time
	changes atomic.Int32 // how often the state was said to be another one

	mu     sync.Mutex
	answer func(ctx context.Context, body string) error
	tries  []string // "3s hello"
	lines  []string
	most   int // at once
	now    int
	done   []string // names of those that wait no more
}

func newPost(t *testing.T) *post {
	m, _ := newTestMetrics(t)
	p := &post{t: t, metrics: m, began: time.Now(), answer: func(context.Context, string) error { return nil }}
	p.box = newOutbox(outboxOptions{send: p.send, done: p.sent, changed: func() { p.changes.Add(1) }, jitter: func() float64 { return 0 }, metrics: m,
		log: func(module, hook string) builtins.Logger { return postLog{p, module + " " + hook} }})
	return p
}

func (p *post) send(ctx context.Context, r effect.Request) error {
	p.mu.Lock()
	p.tries = append(p.tries, fmt.Sprintf("%s %s", time.Since(p.began), r.Body))
	p.now++
	p.most = max(p.most, p.now)
	answer := p.answer
	p.mu.Unlock()
	err := answer(ctx, string(r.Body))
	p.mu.Lock()
	p.now--
	p.mu.Unlock()
	return err
}

func (p *post) sent(module string, m engine.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, module+" "+m.Name+" "+m.Sum)
}

type postLog struct {
	p    *post
	from string
}

func (l postLog) Log(level builtins.Level, msg string, _ []builtins.Field) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	l.p.lines = append(l.p.lines, level.String()+" "+l.from+": "+msg)
}

func newMessage(key, body string) engine.Message {
	return engine.Message{At: time.Now(), Message: effect.Message{
		Key: key, Pos: "web/hooks/a.star:3", Request: effect.Request{Method: "POST", URL: "https://chat.example/hook?token=hush", Body: []byte(body)},
	}}
}

// newKept is a message that is kept.
func newKept(name, key, body string) engine.Message {
	m := newMessage(key, body)
	m.Name, m.Sum = name, body
	return m
}

func (p *post) say(messages ...engine.Message) {
	p.box.send(engine.Send{Module: "web", Hook: "web/a", Messages: messages})
}

func (p *post) want(what string, got, want []string) {
	p.t.Helper()
	if !slices.Equal(got, want) {
		p.t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (p *post) count(outcome string) float64 {
	return testutil.ToFloat64(p.metrics.messages.WithLabelValues("web", outcome))
}

// A server that is away is told of once, and its reason stays, while messages of the hook arrive at another one.
func TestAServerThatIsAwayBesideOneThatIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		var back atomic.Bool
		p.answer = func(_ context.Context, body string) error {
			if body == "away" && !back.Load() {
				return errors.New("no route to host")
			}
			return nil
		}
		away := newMessage("", "away")
		away.Request.URL = "https://away.example/hook"
		p.say(away)
		for range 10 {
			time.Sleep(time.Minute)
			p.say(newMessage("", "a"))
			synctest.Wait()
			if n, problems := p.box.state("web"); n != 1 || len(problems) == 0 || !strings.Contains(problems[0], "away.example") {
				t.Errorf("%d wait: %q", n, problems)
			}
		}
		lines := func() []string { p.mu.Lock(); defer p.mu.Unlock(); return slices.Clone(p.lines) }
		failed := []string{"warn web web/a: web/hooks/a.star:3: POST https://away.example/hook: no route to host (the message is sent again later)"}
		p.want("while it is away", lines(), failed)
		back.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.want("after it", lines(), append(failed, "info web web/a: messages arrive again"))
	})
}

func TestMessagesAreSentAgainUntilTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		answer := func(err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.answer = func(context.Context, string) error { return err }
		}
		answer(&httpclient.StatusError{Code: 503, RetryAfter: 30 * time.Second})
		p.say(newMessage("", "a"))
		synctest.Wait()
		if p.changes.Load() != 1 {
			t.Errorf("%d changes, want one as the messages begin to fail", p.changes.Load())
		}
		if waiting, problems := p.box.state("web"); waiting != 1 || len(problems) != 2 || !strings.Contains(problems[0], "messages of a wait: web/hooks/a.star:3: POST https://chat.example/hook: the server answered 503") {
			t.Errorf("%d, %q", waiting, problems)
		}
		time.Sleep(30 * time.Second) // as asked for
		synctest.Wait()
		answer(errors.New("connection refused"))
		time.Sleep(30*time.Second + 4*time.Second + 8*time.Second)
		synctest.Wait()
		answer(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.changes.Load() < 3 {
			t.Errorf("%d changes, want one for each other error, and one at the end", p.changes.Load())
		}
		p.want("tries", p.tries, []string{"0s a", "30s a", "1m0s a", "1m4s a", "1m12s a", "1m28s a"})
		p.want("log", p.lines, []string{
			"warn web web/a: web/hooks/a.star:3: POST https://chat.example/hook: the server answered 503 Service Unavailable (the message is sent again later)",
			"warn web web/a: web/hooks/a.star:3: POST https://chat.example/hook: connection refused (the message is sent again later)",
			"info web web/a: messages arrive again",
		})
		if waiting, problems := p.box.state("web"); waiting != 0 || problems != nil || p.count("sent") != 1 {
			t.Errorf("%d, %q", waiting, problems)
		}
	})
}

func TestMessagesAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.answer = func(_ context.Context, body string) error {
			if body == "bad" {
				return &httpclient.StatusError{Code: 404}
			}
			return errors.New("connection refused")
		}
		p.say(newMessage("", "bad"))
		synctest.Wait()
		p.say(newMessage("", "down"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := len(p.tries); n < 15 || n > 25 || p.count("failed") != 2 {
			t.Errorf("%d tries, %v failed", n, p.count("failed"))
		}
		last := p.tries[len(p.tries)-1]
		if at, err := time.ParseDuration(strings.Fields(last)[0]); err != nil || at < giveUpAfter || at > giveUpAfter+sendRetry.Max {
			t.Errorf("last try %s", last)
		}
		p.want("log", p.lines, []string{
			"error web web/a: web/hooks/a.star:3: POST https://chat.example/hook: the server answered 404 Not Found (the message is not sent again)",
			"warn web web/a: web/hooks/a.star:3: POST https://chat.example/hook: connection refused (the message is sent again later)",
			"error web web/a: web/hooks/a.star:3: POST https://chat.example/hook: connection refused (the message is given up after 1h0m0s)",
		})
		if testutil.ToFloat64(p.metrics.pending.WithLabelValues("web")) != 0 {
			t.Error("messages wait")
		}
	})
}

func TestALaterMessageOfAKeyReplacesOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		down := true
		p.answer = func(_ context.Context, body string) error {
			if body == "slow" {
				time.Sleep(time.Second)
			}
			if down {
				return errors.New("connection refused")
			}
			return nil
		}
		p.say(newMessage("k", "1"), newMessage("other", "x"))
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		down = false
		p.say(newMessage("k", "2")) // while the first waits: at once
		synctest.Wait()
		p.say(newMessage("k", "slow"))
		time.Sleep(100 * time.Millisecond)
		p.say(newMessage("k", "4"), newMessage("k", "5")) // while it is under way: after it
		time.Sleep(time.Minute)
		synctest.Wait()
		slices.Sort(p.tries)
		p.want("tries", p.tries, []string{"0s 1", "0s x", "1.1s 5", "100ms 2", "100ms slow", "1s x"})
		if p.count("sent") != 4 || p.count("replaced") != 3 {
			t.Errorf("%v sent, %v replaced", p.count("sent"), p.count("replaced"))
		}
	})
}

func TestMessagesHaveBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		open := make(chan struct{})
		p.answer = func(context.Context, string) error { <-open; return nil }
		for range maxPending + 5 {
			p.say(newMessage("", "x"))
		}
		p.box.send(engine.Send{Module: "other", Hook: "other/a", Messages: []engine.Message{newMessage("", "o")}})
		synctest.Wait()
		p.mu.Lock()
		if p.count("dropped") != 5 || len(p.lines) != 5 || p.lines[0] != "error web web/a: messages are dropped (1): 1000 of the module wait already" {
			t.Errorf("%v dropped, %v", p.count("dropped"), p.lines)
		}
		if p.most != maxSending+1 { // and the other module's
			t.Errorf("%d at once", p.most)
		}
		p.mu.Unlock()
		close(open)
		synctest.Wait()
		if p.count("sent") != maxPending {
			t.Errorf("%v sent", p.count("sent"))
		}
		large := newMessage("", strings.Repeat("x", maxPendingBytes+1))
		p.say(large)
		synctest.Wait()
		if p.count("dropped") != 6 {
			t.Errorf("%v dropped", p.count("dropped"))
		}
	})
}

func TestAStopLetsFirstTriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		p.answer = func(ctx context.Context, body string) error {
			switch body {
			case "down":
				return errors.New("connection refused")
			case "hangs":
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second)
			return nil
		}
		p.say(newMessage("", "down"), newKept("n", "", "down"))
		synctest.Wait()
		for range 6 { // more than go at once
			p.say(newMessage("", "slow"))
		}
		p.say(newMessage("", "hangs"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		p.say(newKept("forgotten", "", "down"))
		p.box.saved(engine.Save{Module: "web", Data: map[string][]byte{"n": {}}}) // without it, as after the end of its module
		if lost, left := p.box.stop(ctx); lost != 3 || left != 1 || p.count("sent") != 6 {
			t.Errorf("%d lost, %d left, %v sent", lost, left, p.count("sent"))
		}
		p.say(newMessage("", "late"), newKept("late", "", "late"))
		if p.count("dropped") != 1 || len(p.done) != 0 {
			t.Errorf("after the stop %v are dropped; it is said of %q that they wait no more", p.count("dropped"), p.done)
		}
	})
}

// A message that is kept is told of once, as it waits no more; one that a later one has replaced is not. Those
// that are in memory alone are shown.
func TestTheEngineHearsOfMessagesThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost(t)
		down := true
		p.answer = func(_ context.Context, body string) error {
			switch {
			case body == "bad":
				return &httpclient.StatusError{Code: 404}
			case down:
				return errors.New("connection refused")
			}
			return nil
		}
		old := newKept("old", "", "1")
		old.At = old.At.Add(-giveUpAfter) // by an earlier process
		p.say(newKept("k", "k", "1"), newKept("bad", "", "bad"), newMessage("", "x"), old)
		synctest.Wait()
		p.say(newKept("k", "k", "2"))
		synctest.Wait()
		slices.Sort(p.done)
		p.want("done", p.done, []string{"web bad bad", "web old 1"})
		if _, problems := p.box.state("web"); len(problems) != 2 || problems[1] != "messages that wait are lost when this process ends: no more than 64 KiB of a module's are kept" {
			t.Errorf("problems: %q", problems)
		}
		p.mu.Lock()
		down, p.done = false, nil
		p.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		p.want("done", p.done, []string{"web k 2"})
		if _, problems := p.box.state("web"); problems != nil {
			t.Errorf("problems: %q", problems)
		}
		large := newKept("large", "", strings.Repeat("x", maxPendingBytes+1))
		large.Sum, p.done = "s", nil
		p.say(large)
		p.want("dropped", p.done, []string{"web large s"})
	})
}
