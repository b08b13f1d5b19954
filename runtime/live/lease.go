package live

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/starling-operator/starling/modules/status"
)

// The Lease's times: a crashed holder is followed after leaseDuration, and a holder
// that cannot renew stops before it.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// leaseLock returns the Lease of the instance, under a name of this process's own.
func (d *Driver) leaseLock() (resourcelock.Interface, error) {
	client, err := coordination.NewForConfig(d.o.Client.UnfencedConfig())
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "starling"
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: d.o.Namespace, Name: d.o.Name},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		Labels:     map[string]string{status.LabelInstance: status.InstanceLabel(d.o.Namespace, d.o.Name)},
	}, nil
}

// lead holds the Lease until ctx ends, or until it is lost: then it returns nil. It
// gives nothing back, because writes may still be under way, see [giveBack];
// client-go's own way of doing so would also report a loss only after one more
// try to reach the API server, when another process may hold the Lease already.
func lead(ctx context.Context, name string, lock resourcelock.Interface, log zerolog.Logger, led func()) error {
	waiting := false
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led() },
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != lock.Identity() && !waiting {
					waiting = true
					log.Info().Str("holder", holder).Msg("another process holds the lease; this one waits")
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	elector.Run(ctx)
	return ctx.Err()
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
