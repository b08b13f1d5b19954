package watch

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
)

// unready is a client whose first watches fail with an error.
type unready struct {
	*cluster.Client
	left atomic.Int32
	err  error
}

func (u *unready) Watch(ctx context.Context, m cluster.Mapping, namespace string, o metav1.ListOptions) (io.ReadCloser, error) {
	if u.left.Add(-1) >= 0 {
		return nil, u.err
	}
	return u.Client.Watch(ctx, m, namespace, o)
}

// unreadyFixture has an API server that answers the first watches of each stream with an error.
func unreadyFixture(t *testing.T, watches int32, err error) *fixture {
	f := newFixture(t)
	f.manager.Shutdown()
	client := &unready{Client: f.client, err: err}
	client.left.Store(watches)
	o := f.manager.o
	o.Client = client
	f.manager = New(o)
	t.Cleanup(f.manager.Shutdown)
	return f
}

// An API server lists a kind whose definition was just made, but opens no watch on it for a moment. That is no failure.
func TestStorageThatStartsIsWaitedFor(t *testing.T) {
	f := unreadyFixture(t, 2, apierrors.NewTooManyRequests(cluster.StorageStarts, 1))
	f.api.Put(configMap("a", "x", "1"))
	began := time.Now()
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")
	f.api.Put(configMap("a", "x", "2"))
	f.await(`w modified a/x "2"`)
	if took := time.Since(began); took < time.Second || took > time.Minute {
		t.Errorf("the watch was opened after %s, and the server has named one second", took)
	}
	f.nothing()
}

func TestServerInTroubleIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"overloaded":           {apierrors.NewTooManyRequests("too many requests, please try again later", 1), "overloaded"},
		"a storage that fails": {apierrors.NewTooManyRequests(cluster.StorageStarts+": etcd is down", 1), "the API server does not hold it yet: " + cluster.StorageStarts + ": etcd is down"},
		"a storage that lasts": {apierrors.NewTooManyRequests(cluster.StorageStarts, 20), "the API server does not hold it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			f := unreadyFixture(t, 2, c.err)
			f.manager.Start(configMaps("w"))
			f.await("w synced served=true")
			f.mustFail("w", c.says)
			f.await("w failed <nil>")
		})
	}
}
