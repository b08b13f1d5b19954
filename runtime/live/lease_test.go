package live

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// memoryLock is a Lease in memory. Once it is cut off, every call hangs, as on a
// network that swallows packets.
type memoryLock struct {
	mu     sync.Mutex
	id     string
	record *resourcelock.LeaderElectionRecord
	cut    bool
	denied error
}

func (l *memoryLock) reach(ctx context.Context) error {
	l.mu.Lock()
	cut, denied := l.cut, l.denied
	l.mu.Unlock()
	if cut {
		<-ctx.Done()
		return ctx.Err()
	}
	return denied
}

// set changes how the Lease can be reached.
func (l *memoryLock) set(cut bool, denied error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.denied = cut, denied
}

func (l *memoryLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.reach(ctx); err != nil {
		return nil, nil, err
	}
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "starling")
	}
	r := *l.record
	return &r, []byte(r.HolderIdentity + r.RenewTime.String()), nil
}

func (l *memoryLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *memoryLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.reach(ctx); err != nil {
		return err
	}
	l.record = &r
	return nil
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return l.id }
func (l *memoryLock) Describe() string   { return "ops/starling" }

// times are those of the tests.
var times = DefaultLeaseTimes()

func leading(lock resourcelock.Interface, led func()) leadOptions {
	return leadOptions{name: "starling", times: times, lock: lock, log: zerolog.Nop(), led: led, waits: func() {}, renews: func(func()) {}, until: func(time.Time) {}}
}

// Another process may take the Lease its Duration after the last renewal: this one
// must know before that it has lost it, and have time to stop.
func TestALostLeaseIsKnownInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &memoryLock{id: "a"}
		led := make(chan struct{})
		lost := make(chan error, 1)
		go func() {
			lost <- lead(t.Context(), leading(lock, func() { close(led) }))
		}()
		<-led
		synctest.Wait()
		renewed := lock.record.RenewTime.Time
		lock.set(true, nil)
		if err := <-lost; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(renewed); took+times.grace() > times.Duration {
			t.Errorf("the loss is known after %s; with %s to stop that is more than %s", took, times.grace(), times.Duration)
		}
	})
}

// A request that hangs, as on a network that swallows packets, is given up: who waits for
// the Lease gets it once it can be reached, and who holds it has another try.
func TestALeaseRequestThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &memoryLock{id: "a", cut: true}
		ctx, cancel := context.WithCancel(t.Context())
		led := make(chan struct{})
		lost := make(chan error, 1)
		go func() { lost <- lead(ctx, leading(lock, func() { close(led) })) }()
		time.Sleep(time.Second)
		lock.set(false, nil)
		select {
		case <-led:
		case <-time.After(time.Minute):
			t.Error("the Lease is not had")
		}
		lock.set(true, nil)
		time.Sleep(times.Retry + time.Second) // a renewal hangs
		lock.set(false, nil)
		time.Sleep(times.Duration)
		select {
		case err := <-lost:
			t.Errorf("the Lease is lost by one request: %v", err)
		default:
		}
		cancel()
		<-lost
	})
}

// A process that is told that the Lease is free has it at once; told so while it holds it, it goes on.
func TestAFreeLeaseIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		now := metav1.Now()
		lock := &memoryLock{id: "b", record: &resourcelock.LeaderElectionRecord{
			HolderIdentity: "a", LeaseDurationSeconds: int(times.Duration.Seconds()), RenewTime: now, AcquireTime: now}}
		free, led, waits := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		o := leading(lock, func() { close(led) })
		o.free, o.waits = free, func() { close(waits) }
		lost := make(chan error, 1)
		go func() { lost <- lead(ctx, o) }()
		<-waits
		time.Sleep(times.Retry / 4)
		synctest.Wait()
		lock.record = &resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
		began := time.Now()
		free <- struct{}{}
		<-led
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		free <- struct{}{}
		time.Sleep(times.Duration)
		select {
		case err := <-lost:
			t.Errorf("given up: %v", err)
		default:
		}
		cancel()
		if err := <-lost; err != context.Canceled {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestTheLeaseIsGivenBackByItsHolderAlone(t *testing.T) {
	for holder, want := range map[string]string{"a": "", "b": "b"} {
		lock := &memoryLock{id: "a", record: &resourcelock.LeaderElectionRecord{HolderIdentity: holder}}
		if err := giveBack(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
		if lock.record.HolderIdentity != want {
			t.Errorf("held by %q, afterwards by %q", holder, lock.record.HolderIdentity)
		}
	}
	if err := giveBack(t.Context(), &memoryLock{id: "a"}); err != nil {
		t.Error(err)
	}
}

// At its end a process that has led says that the Lease stays with it; one that has not has nothing to say.
func TestALeaseThatCannotBeGivenBack(t *testing.T) {
	for is, said := range map[role]bool{begins: false, waits: false, takesOver: true, works: true} {
		var log bytes.Buffer
		d := &Driver{o: Options{Lease: times, Log: zerolog.New(&log)}, holder: newHolder()}
		d.holder.becomes(is)
		d.leave(&memoryLock{id: "a", denied: errors.New("no route")})
		if got := strings.Contains(log.String(), "could not be given back"); got != said {
			t.Errorf("as %d it says %q", is, log.String())
		}
	}
}

// A process without the right to the Lease gets an error at once; a refusal of one that holds it may be
// a passing one.
func TestALeaseThatMayNotBeHad(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "starling", nil)
	synctest.Test(t, func(t *testing.T) {
		err := lead(t.Context(), leading(&memoryLock{id: "a", denied: denied}, func() { t.Error("leads") }))
		if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), "lease ops/starling: ") {
			t.Errorf("got %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		lock := &memoryLock{id: "a"}
		led := make(chan struct{})
		lost := make(chan error, 1)
		go func() { lost <- lead(ctx, leading(lock, func() { close(led) })) }()
		<-led
		lock.set(false, denied)
		time.Sleep(2 * times.Retry)
		lock.set(false, nil)
		time.Sleep(times.Duration)
		select {
		case err := <-lost:
			t.Errorf("given up: %v", err)
		default:
		}
		cancel()
		if err := <-lost; err != context.Canceled {
			t.Errorf("ended with %v", err)
		}
	})
}

// No renewal that was asked for begins, or goes on, once the process has stopped to hold the Lease.
func TestNothingIsRenewedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &slowLock{memoryLock: memoryLock{id: "a"}}
		ctx, stop := context.WithCancel(t.Context())
		var now func()
		ended := make(chan error)
		go func() {
			o := leading(lock, func() {})
			o.renews = func(f func()) {
				if f != nil {
					now = f
				}
			}
			ended <- lead(ctx, o)
		}()
		synctest.Wait()
		lock.slow.Store(true)
		go now()
		synctest.Wait()
		stop()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it has ended beside a renewal")
		default:
		}
		time.Sleep(time.Minute)
		<-ended
		before := lock.writes.Load()
		now()
		if n := lock.writes.Load(); n != before {
			t.Errorf("%d renewals after the end", n-before)
		}
	})
}

// slowLock is a lock whose writes may take ten seconds, whatever becomes of their context.
type slowLock struct {
	memoryLock
	slow   atomic.Bool
	writes atomic.Int32
}

func (l *slowLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.writes.Add(1)
	if l.slow.Load() {
		time.Sleep(10 * time.Second)
	}
	return l.memoryLock.Update(ctx, r)
}
func (l *slowLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}
