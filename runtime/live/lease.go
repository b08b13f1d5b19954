package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// leaseLock returns the Lease of the instance, under the name of this process. Its writes
// are not those of [cluster.Client]: they say when its fence opens and closes, so they go past it,
// and client-go knows when to renew.
func (d *Driver) leaseLock() (resourcelock.Interface, error) {
	client, err := coordination.NewForConfig(d.o.Client.UnfencedConfig())
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	kind := cluster.Mapping{GVR: coordinationv1.SchemeGroupVersion.WithResource("leases"), Kind: "Lease", Namespaced: true}
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: d.o.Namespace, Name: d.o.Name},
		Client: &leases{
			LeasesGetter: client, marks: d.marks, trees: d.trees, seal: d.leaseSeal(), sight: d.sight, retry: d.o.Lease.Retry,
			own: d.identity, heard: d.hearOf, explain: func(err error, verb string) error {
				return d.o.Client.Explain(err, verb, kind, d.o.Namespace)
			},
		},
		LockConfig: resourcelock.ResourceLockConfig{Identity: d.identity},
		Labels:     map[string]string{effect.InstanceLabel: effect.Instance{Namespace: d.o.Namespace, Name: d.o.Name}.Label()},
	}, nil
}

// leadOptions say how to hold the Lease, and whom to tell.
type leadOptions struct {
	name  string
	lock  resourcelock.Interface
	times LeaseTimes
	log   zerolog.Logger
	// led is called, in its own goroutine, once the Lease is held.
	led func()
	// waits is called, in its own goroutine and once, when another process is seen to hold the
	// Lease before this one has had it.
	waits func()
	// free has the Lease asked for at once: nobody holds it. Nil: it is asked for each Retry.
	free <-chan struct{}
	// renews takes what renews the Lease at once, if it is held; nil: nothing does any more.
	renews func(now func())
	// again says that this process has had it before: a refusal may be a passing one.
	again bool
	// until is called after each renewal with the time until which nobody else can
	// have the Lease, and this process has time to stop.
	until func(time.Time)
}

// errTaken ends the leadership at once: client-go would first try to renew for ten
// seconds.
var errTaken = errors.New("another process has taken the lease")

// lead holds the Lease until ctx ends, or until it is lost: then it returns nil or
// [errTaken]. A process whose first request of the Lease is refused gets an error at once: waiting would
// not help. It gives nothing back, because writes may still be under way, see
// [giveBack]; client-go's own way of doing so would also report a loss only after one
// more try to reach the API server, when another process may hold the Lease already.
func lead(ctx context.Context, o leadOptions) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	lock := &watchedLock{
		Interface: o.lock, turn: make(chan struct{}, 1), within: o.times.request(), lasts: o.times.Duration - o.times.grace(),
		end: end, until: o.until,
	}
	lock.known.Store(o.again)
	o.renews(func() { lock.renew(ctx) })
	defer func() { // a renewal that goes on could take back what giveBack gives
		o.renews(nil)
		end(nil)
		lock.begin()()
	}()
	led := sync.OnceFunc(o.led)
	var waiting sync.Once
	config := leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: o.times.Duration, RenewDeadline: o.times.Renew, RetryPeriod: o.times.Retry,
		Name: o.name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led() },
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder == lock.Identity() {
					return
				}
				waiting.Do(func() {
					o.log.Info().Str("holder", holder).Msg("another process holds the lease; this one waits")
					o.waits()
				})
			},
		},
	}
	for {
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return fmt.Errorf("lease: %w", err)
		}
		if !lock.elect(ctx, elector, o.free) {
			return context.Cause(ctx)
		}
	}
}

// elect has the elector run until ctx ends, or the Lease is lost. It returns true when the next one
// should ask at once: one that waits cannot be told to.
func (l *watchedLock) elect(ctx context.Context, elector *leaderelection.LeaderElector, free <-chan struct{}) (again bool) {
	try, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-free:
			if !l.held.Load() {
				end()
			}
		case <-try.Done():
		}
	}()
	elector.Run(try)
	return try.Err() != nil && ctx.Err() == nil
}

// watchedLock bounds each request, and tells what the answers about the Lease mean.
type watchedLock struct {
	resourcelock.Interface
	turn   chan struct{} // full during a request
	within time.Duration
	last   resourcelock.LeaderElectionRecord // that this process has written
	lasts  time.Duration                     // after a renewal: then this process has stopped before another one begins
	end    func(cause error)
	until  func(time.Time)
	held   atomic.Bool
	known  atomic.Bool // it was answered once: a refusal may be a passing one, as while an API server begins
}

// begin waits for the request that is under way. The lock below is for one at a time.
func (l *watchedLock) begin() (end func()) {
	l.turn <- struct{}{}
	return func() { <-l.turn }
}

// Get reads the Lease. One that was ours and is not any more is lost: another process has it, or has given it back.
func (l *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	defer l.begin()()
	ctx, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.known.Store(true)
	}
	if err == nil && l.held.Load() && record.HolderIdentity != l.Identity() {
		l.end(errTaken)
	}
	return record, raw, l.refused(err)
}

// Create makes the Lease.
func (l *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update writes the Lease.
func (l *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// renew writes the Lease once more, after a request that is under way. Where that fails the next renewal comes soon.
func (l *watchedLock) renew(ctx context.Context) {
	if !l.held.Load() {
		return
	}
	end := l.begin()
	record := l.last
	end()
	record.RenewTime = metav1.Now()
	_ = l.Update(ctx, record)
}

// write notes that the Lease is ours from a time before the request.
func (l *watchedLock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	defer l.begin()()
	if err := ctx.Err(); err != nil { // the last renewal has been
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	began := time.Now()
	err := send(ctx, record)
	if err == nil {
		l.last = record
		l.held.Store(true)
		l.known.Store(true)
		l.until(began.Add(l.lasts))
	}
	return l.refused(err)
}

func (l *watchedLock) refused(err error) error {
	if apierrors.IsForbidden(err) && !l.known.Load() {
		l.end(fmt.Errorf("lease %s: %w", l.Describe(), err))
	}
	return err
}

// giveBack lets another process have the Lease at once, if it is ours. It must
// come after the last write.
func giveBack(ctx context.Context, lock resourcelock.Interface) error {
	held, _, err := lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case held.HolderIdentity != lock.Identity():
		return nil
	}
	now := metav1.Now()
	return lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: held.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}
