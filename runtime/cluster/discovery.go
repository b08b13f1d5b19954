package cluster

import (
	"sync"
	"time"

	"k8s.io/client-go/discovery"
)

// discoveryAge is how old discovery may be when somebody asks for a fresh one.
const discoveryAge = 10 * time.Second

// discoveryCache is client-go's memory cache with an Invalidate that does not
// read everything again for each of a hundred releases.
type discoveryCache struct {
	discovery.CachedDiscoveryInterface

	mu   sync.Mutex
	last time.Time // of the last real invalidation
}

// Invalidate forgets what is cached, unless it did so less than ten seconds ago.
func (d *discoveryCache) Invalidate() {
	d.mu.Lock()
	recent := time.Since(d.last) < discoveryAge
	d.mu.Unlock()
	if !recent {
		d.forget()
	}
}

// forget is an Invalidate that always acts.
func (d *discoveryCache) forget() {
	d.mu.Lock()
	d.last = time.Now()
	d.mu.Unlock()
	d.CachedDiscoveryInterface.Invalidate()
}
