package watch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
)

// laggingClient lists one object as it is, and has watches that bring nothing.
type laggingClient struct {
	listClient
	data string
}

func (c *laggingClient) Each(_ context.Context, _ cluster.Mapping, _ string, _ metav1.ListOptions, fn func(map[string]any) error) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	version := fmt.Sprint(10 + c.lists)
	obj := configMap("a", "x", c.data)
	obj["metadata"].(map[string]any)["resourceVersion"] = version
	return version, fn(obj)
}

func (c *laggingClient) set(data string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.data = data
}

// A watch that shares a stream shows what that has brought, though it may lag behind. After a renewal it shows
// what was there at the renewal, and those from before are told.
func TestAWatchAfterARenewalShowsNothingOlder(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("apart=%t", apart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r := &laggingClient{data: "1"}, &recorder{t: t, more: make(chan struct{})}
				m := New(Options{Client: c, Sink: r, Idle: time.Hour})
				defer m.Shutdown()
				start := func(id string) {
					spec := configMaps(id)
					spec.Apart = apart
					m.Start(spec)
					r.told(id + " synced served=true")
				}
				start("before")
				synctest.Wait()
				c.set("2")
				start("shares")
				if got := fmt.Sprint(m.Snapshot("shares")); got != `["1"]` {
					t.Error("without a renewal: ", got)
				}
				m.Renew()
				start("after")
				synctest.Wait()
				for _, id := range []string{"before", "shares", "after"} {
					if got := fmt.Sprint(m.Snapshot(id)); got != `["2"]` {
						t.Errorf("%s: %s", id, got)
					}
				}
				lists := c.deny(nil)
				time.Sleep(time.Minute)
				if n := c.deny(nil) - lists; n > 0 {
					t.Errorf("%d more lists", n)
				}
			})
		})
	}
}

// Renewals at any moment leave watches as they were: complete, and told of each change.
func TestRenewalsLoseNothing(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "0"))
	f.manager.Start(configMaps("before"))
	f.told("before synced served=true")
	for i := range 50 {
		f.api.Put(configMap("a", "x", fmt.Sprint(i+1)))
		f.manager.Renew()
		if i%5 == 0 {
			f.manager.Start(configMaps("after"))
		}
	}
	f.manager.Start(configMaps("last"))
	f.told("last synced served=true")
	f.snapshot("last", `["50"]`)
	f.api.Put(configMap("a", "x", "end"))
	f.told(`last modified a/x "end"`)
	f.manager.Stop("last")
	f.api.Put(configMap("a", "y", "new"))
	f.told(`after added a/y "new"`)
}
