package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpclient"
	"github.com/starling-operator/starling/runtime/lane"
)

// outbox sends what hooks have said with http.send, each message until it is taken, for
// an hour at most. The engine keeps those that wait, as far as there is room: the next process
// sends them.
type outbox struct {
	o outboxOptions

	mu      sync.Mutex
	modules map[string]*moduleBox
	closed  bool
	// lost are messages that were in memory alone, left those that the next process sends.
	lost, left int

	ctx    context.Context
	cancel context.CancelFunc
	// stopping is closed when nothing is tried again any more.
	stopping chan struct{}
	busy     sync.WaitGroup
}

type outboxOptions struct {
	send func(context.Context, effect.Request) error
	// done is told of each message that waits no more.
	done func(module string, m engine.Message)
	log  func(module, hook string) builtins.Logger
	// changed is called when a state that [outbox.state] tells may be another one.
	changed func()
	jitter  func() float64
	metrics *Metrics
}

// moduleBox holds what one module's messages share.
type moduleBox struct {
	waiting map[*pending]bool
	unkept  int // of those that wait, in memory alone
	bytes   int
	slots   chan struct{}
	keyed   map[messageKey]*pending
	gone    bool // the module is not in the tree any more
}

type messageKey struct{ hook, key string }

// pending is one message under way, or, with a key, a row of messages of which the
// last counts.
type pending struct {
	module, hook string
	box          *moduleBox
	message      engine.Message
	version      int
	replaced     chan struct{}
	failing      string // why it has not arrived
}

const (
	// maxPending and maxPendingBytes bound what waits for one module.
	maxPending      = 1000
	maxPendingBytes = 16 << 20
	// maxSending is how many messages of one module are under way at once.
	maxSending = 4
	// giveUpAfter is how long a message is tried.
	giveUpAfter = time.Hour
	// maxRetryAfter bounds what a server may ask for.
	maxRetryAfter = 10 * time.Minute
)

// sendRetry spaces out the tries of a message.
var sendRetry = lane.Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

func newOutbox(o outboxOptions) *outbox {
	b := &outbox{o: o}
	b.begin()
	return b
}

// begin has an outbox that is new, or was stopped, take messages.
func (b *outbox) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.modules, b.closed, b.lost, b.left, b.stopping = map[string]*moduleBox{}, false, 0, 0, make(chan struct{})
	b.ctx, b.cancel = context.WithCancel(context.Background())
}

// send takes over the messages of a run.
func (b *outbox) send(a engine.Send) {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.modules[a.Module]
	if box == nil {
		box = &moduleBox{waiting: map[*pending]bool{}, slots: make(chan struct{}, maxSending), keyed: map[messageKey]*pending{}}
		b.modules[a.Module] = box
	}
	box.gone = false
	dropped := 0
	for _, m := range a.Messages {
		if !b.take(box, a, m) {
			dropped++
		}
	}
	if dropped > 0 {
		b.o.metrics.messages.WithLabelValues(a.Module, "dropped").Add(float64(dropped))
		b.o.log(a.Module, a.Hook).Log(builtins.LevelError, fmt.Sprintf("messages are dropped (%d): %d of the module wait already", dropped, len(box.waiting)), nil)
	}
	b.o.metrics.pending.WithLabelValues(a.Module).Set(float64(len(box.waiting)))
}

// take lets one message in, if there is room.
func (b *outbox) take(box *moduleBox, a engine.Send, m engine.Message) bool {
	key := messageKey{a.Hook, m.Key}
	if old := box.keyed[key]; m.Key != "" && old != nil {
		box.bytes += m.Size() - old.message.Size()
		box.unkept += unkept(m) - unkept(old.message)
		old.message = m
		old.version++
		b.o.metrics.messages.WithLabelValues(a.Module, "replaced").Inc()
		tell(old.replaced)
		return true
	}
	if b.closed && unkept(m) == 0 {
		return true // the next process that leads sends it
	}
	if b.closed || len(box.waiting) >= maxPending || box.bytes+m.Size() > maxPendingBytes {
		b.done(a.Module, m)
		return false
	}
	p := &pending{module: a.Module, hook: a.Hook, box: box, message: m, replaced: make(chan struct{}, 1)}
	if m.Key != "" {
		box.keyed[key] = p
	}
	box.waiting[p] = true
	box.unkept += unkept(m)
	box.bytes += m.Size()
	b.busy.Go(func() { b.deliver(p) })
	return true
}

// deliver tries until the message is taken or there is no point any more.
func (b *outbox) deliver(p *pending) {
	for try := 1; ; try++ {
		p.box.slots <- struct{}{}
		b.mu.Lock()
		m, version := p.message, p.version
		select {
		case <-p.replaced: // by this one
		default:
		}
		b.mu.Unlock()
		err := b.o.send(b.ctx, m.Request)
		<-p.box.slots

		b.mu.Lock()
		replaced := p.version != version
		done := b.settle(p, m, err, replaced)
		b.mu.Unlock()
		switch {
		case done:
			return
		case replaced: // the later one is tried at once
			try = 0
			continue
		}

		select {
		case <-time.After(sendDelay(err, try, b.o.jitter())):
		case <-p.replaced:
			try = 0
		case <-b.stopping:
			b.mu.Lock()
			b.lost += unkept(p.message)
			b.left += 1 - unkept(p.message)
			b.leave(p)
			b.mu.Unlock()
			return
		}
	}
}

func sendDelay(err error, try int, jitter float64) time.Duration {
	delay := sendRetry.Delay(try, jitter)
	if status, ok := errors.AsType[*httpclient.StatusError](err); ok {
		delay = max(delay, min(status.RetryAfter, maxRetryAfter))
	}
	return delay
}

// settle notes how a try has ended, and says whether it was the message's last one.
// Of a message that was replaced meanwhile nothing is tried again.
func (b *outbox) settle(p *pending, m engine.Message, err error, replaced bool) (done bool) {
	count := func(outcome string) { b.o.metrics.messages.WithLabelValues(p.module, outcome).Inc() }
	log := b.o.log(p.module, p.hook)
	if err == nil {
		count("sent")
		again := false
		for other := range p.box.waiting { // to the same server: another one may still be away
			if other.hook == p.hook && other.failing != "" && other.message.Where() == m.Where() {
				again, other.failing = true, ""
			}
		}
		if again {
			b.o.changed()
			log.Log(builtins.LevelInfo, "messages arrive again", nil)
		}
		if !replaced {
			b.done(p.module, m)
			b.leave(p)
		}
		return !replaced
	}
	what := fmt.Sprintf("%s: %s: %s", m.Pos, m.Where(), err)
	switch {
	case replaced || b.ctx.Err() != nil:
	case httpclient.Permanent(err), time.Since(m.At) >= giveUpAfter:
		end := " (the message is not sent again)"
		if !httpclient.Permanent(err) {
			end = fmt.Sprintf(" (the message is given up after %s)", giveUpAfter)
		}
		count("failed")
		log.Log(builtins.LevelError, what+end, nil)
		b.done(p.module, m)
		b.leave(p)
		return true
	default:
		said := false
		for other := range p.box.waiting {
			said = said || other.hook == p.hook && other.failing == what
		}
		if p.failing = what; !said {
			b.o.changed()
			log.Log(builtins.LevelWarn, what+" (the message is sent again later)", nil)
		}
	}
	return false
}

// unkept counts a message that is in memory alone.
func unkept(m engine.Message) int {
	if m.Name == "" {
		return 1
	}
	return 0
}

// done has a message forgotten that is kept.
func (b *outbox) done(module string, m engine.Message) {
	if m.Name != "" {
		b.o.done(module, m)
	}
}

// leave takes a message out.
func (b *outbox) leave(p *pending) {
	delete(p.box.waiting, p)
	p.box.unkept -= unkept(p.message)
	p.box.bytes -= p.message.Size()
	if p.message.Key != "" {
		delete(p.box.keyed, messageKey{p.hook, p.message.Key})
	}
	if p.failing != "" || len(p.box.waiting) == 0 {
		b.o.changed()
	}
	b.o.metrics.pending.WithLabelValues(p.module).Set(float64(len(p.box.waiting)))
	if p.box.gone && len(p.box.waiting) == 0 {
		b.remove(p.module)
	}
}

// gone forgets a module that is not in the tree any more, once its messages are sent.
func (b *outbox) gone(module string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.modules[module]
	if box == nil {
		return
	}
	if box.gone = true; len(box.waiting) == 0 {
		b.remove(module)
	}
}

// saved takes in what is kept of a module from now on: of one that is forgotten, no message is.
func (b *outbox) saved(a engine.Save) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if box := b.modules[a.Module]; box != nil {
		for p := range box.waiting {
			if p.message.Name != "" && a.Data[p.message.Name] == nil {
				p.message.Name = ""
				box.unkept++
			}
		}
	}
}

func (b *outbox) remove(module string) {
	delete(b.modules, module)
	b.o.metrics.pending.DeleteLabelValues(module)
}

// state returns how many messages of a module wait, and why they do not arrive.
func (b *outbox) state(module string) (waiting int, problems []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := b.modules[module]
	if box == nil {
		return 0, nil
	}
	why := map[string]string{} // by hook
	for p := range box.waiting {
		if p.failing != "" && (why[p.hook] == "" || p.failing < why[p.hook]) {
			why[p.hook] = p.failing
		}
	}
	for hook, what := range why {
		problems = append(problems, fmt.Sprintf("messages of %s wait: %s", strings.TrimPrefix(hook, module+"/"), what))
	}
	slices.Sort(problems)
	if box.unkept > 0 {
		problems = append(problems, fmt.Sprintf("messages that wait are lost when this process ends: no more than %d KiB of a module's are kept", engine.MaxKeptMessages>>10))
	}
	return len(box.waiting), problems
}

// stop lets tries that are under way, or come first, end while ctx does. It returns how many
// messages of the rest are lost, and how many are left to the next process.
func (b *outbox) stop(ctx context.Context) (lost, left int) {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.stopping)
	}
	b.mu.Unlock()
	idle := make(chan struct{})
	go func() { b.busy.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	b.cancel()
	<-idle
	return b.lost, b.left
}
