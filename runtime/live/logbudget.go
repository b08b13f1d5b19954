package live

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/object"
)

const (
	// logRate is how many bytes the hooks of one module may log in a second, when they go
	// on, and logBurst how many at once.
	logRate  = 64 << 10
	logBurst = 4 << 20
	// lineBytes is about what a line has beside its message and fields.
	lineBytes = 150
)

// logBudgets bound what the hooks of each module log. One module that logs without end
// would fill the disk of the node, and take the processor from the others.
type logBudgets struct {
	dropped *prometheus.CounterVec

	mu  sync.Mutex
	all map[string]*logBudget
}

// of returns the budget of a module; log is where it says that lines are left out.
func (b *logBudgets) of(module string, log zerolog.Logger) *logBudget {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[module] == nil {
		b.all[module] = &logBudget{
			module: module, log: log, limit: rate.NewLimiter(logRate, logBurst), dropped: b.dropped,
			tell: rate.Sometimes{First: 1, Interval: time.Minute},
		}
	}
	return b.all[module]
}

// forget drops the budget of a module that is gone.
func (b *logBudgets) forget(module string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, module)
}

// logBudget is that of one module.
type logBudget struct {
	module  string
	log     zerolog.Logger
	limit   *rate.Limiter
	dropped *prometheus.CounterVec
	tell    rate.Sometimes
}

// spend reports whether a line may be written. Of lines that are left out one line a
// minute tells.
func (b *logBudget) spend(msg string, fields []builtins.Field) bool {
	size := lineBytes + len(msg)
	for _, f := range fields {
		size += len(f.Key) + object.PlainSize(f.Value)
	}
	if b.limit.AllowN(time.Now(), min(size, logBurst)) {
		return true
	}
	b.dropped.WithLabelValues(b.module).Inc()
	b.tell.Do(func() {
		b.log.Warn().Str("module", b.module).Msg(fmt.Sprintf(
			"the hooks of this module log more than %d KiB a second; lines are left out, and counted in starling_log_lines_dropped_total", logRate>>10))
	})
	return false
}
