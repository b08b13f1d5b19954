package live

import (
	"context"
	"fmt"
	"os"
	"time"

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

// lead holds the Lease until ctx ends, which gives it back, or until it is lost.
func (d *Driver) lead(ctx context.Context, led func()) error {
	client, err := coordination.NewForConfig(d.o.Client.UnfencedConfig())
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "starling"
	}
	waiting := false
	id := host + "_" + string(uuid.NewUUID())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: d.o.Namespace, Name: d.o.Name},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
			Labels:     map[string]string{status.LabelInstance: status.InstanceLabel(d.o.Namespace, d.o.Name)},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: d.o.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { led() },
			OnStoppedLeading: func() {},
			OnNewLeader: func(holder string) {
				if holder != id && !waiting {
					waiting = true
					d.o.Log.Info().Str("holder", holder).Msg("another process holds the lease; this one waits")
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}
