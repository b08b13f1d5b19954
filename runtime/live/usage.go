package live

import (
	"sync"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// usages are what the runs of hooks have taken, for `starling top`. The metrics know it, too, and
// are made to be added to, not to be read.
type usages struct {
	mu sync.Mutex
	of map[hookName]status.Usage
}

type hookName struct{ module, hook string }

func newUsages() *usages { return &usages{of: map[hookName]status.Usage{}} }

func (u *usages) add(module, hook string, took time.Duration, steps uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.of[hookName{module, hook}]
	of.Add(took, steps)
	u.of[hookName{module, hook}] = of
}

func (u *usages) get(module, hook string) status.Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.of[hookName{module, hook}]
}

// forget drops a hook that is gone, or with an empty hook those of its whole module.
func (u *usages) forget(module, hook string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for of := range u.of {
		if of.module == module && (hook == "" || of.hook == hook) {
			delete(u.of, of)
		}
	}
}
