// Package effect holds what a hook run asks for. A run records effects and touches nothing; once it has succeeded the
// effects are checked and then committed in the order of [Effects]: object writes in call order, what is kept (the
// values layer, the state), then values and metrics in memory, then messages.
package effect

import (
	"reflect"
	"slices"
	"time"
)

// MaxKept is how large one layer or one state may be that is kept, in bytes of JSON: a Secret holds 1 MiB.
const MaxKept = 900 << 10

// KeptMessage is what the keys of messages begin with among all that is kept of a module. If one save takes several
// writes, messages come first.
const KeptMessage = "message."

// Effects is all that one run asked for.
type Effects struct {
	// Values is the new values layer of the hook, in call order. It replaces
	// the layer of the hook's last successful run.
	Values []ValueOp `json:"values,omitempty"`
	// Writes are object writes in call order.
	Writes []Write `json:"writes,omitempty"`
	// Metrics in call order.
	Metrics []Metric `json:"metrics,omitempty"`
	// Memory is all that the hook is to remember from now on; a nil State means no change.
	Memory
	// Messages are sent after all else, in call order.
	Messages []Message `json:"messages,omitempty"`
	// Requeue asks for another run after this time; 0 means no.
	Requeue time.Duration `json:"requeue,omitempty"`
}

// Memory is what runs about one subject remember. It is replaced, never changed.
type Memory struct {
	// State is plain data by key.
	State map[string]any `json:"state,omitempty"`
	// StateSecrets are the paths inside State at which texts stand that are secret.
	StateSecrets [][]string `json:"stateSecrets,omitempty"`
}

// Equal says whether two are the same, secrets included.
func (m Memory) Equal(other Memory) bool {
	return len(m.State)+len(other.State) == 0 ||
		reflect.DeepEqual(m.State, other.State) && slices.EqualFunc(m.StateSecrets, other.StateSecrets, slices.Equal)
}

// ValueOpKind names what a [ValueOp] does.
type ValueOpKind string

const (
	// OpSet puts Value at Path, whatever was there.
	OpSet ValueOpKind = "set"
	// OpDefault puts Value at Path in the layer below the user's config.
	OpDefault ValueOpKind = "default"
	// OpMerge merges Value, a map, into what is at Path: maps deeply, all else replaced.
	OpMerge ValueOpKind = "merge"
	// OpRemove takes Path out of the values.
	OpRemove ValueOpKind = "remove"
)

// ValueOp is one change of the values, made by one call of a values builtin.
type ValueOp struct {
	Op ValueOpKind `json:"op"`
	// Path is exact: one element a key.
	Path []string `json:"path"`
	// Value is plain JSON data (nil, bool, int64, float64, string, []any, map[string]any); nil for OpRemove.
	Value any `json:"value,omitempty"`
	// Secrets are the paths inside Value, empty for Value itself, at which texts stand that were of the type secret.
	Secrets [][]string `json:"secrets,omitempty"`
	// Pos is the "file:line" of the call. It is not kept across restarts.
	Pos string `json:"-"`
	// Origin is the run of the call; nil: not known, as after a restart.
	Origin *Origin `json:"-"`
}

// Origin says which run asked for a [ValueOp], for people.
type Origin struct {
	// Run is the engine's number of the run, At the time at which it began.
	Run uint64
	At  time.Time
	// Within are the later calls that changed parts of Value, in call order.
	Within []Place
}

// Place is a call that changed what is at Path inside the value of a [ValueOp].
type Place struct {
	Path   []string
	Pos    string
	Origin *Origin
}

// MetricKind names what a [Metric] does.
type MetricKind string

const (
	// MetricSet sets a gauge.
	MetricSet MetricKind = "set"
	// MetricAdd adds to a counter.
	MetricAdd MetricKind = "add"
	// MetricObserve counts a value in a histogram.
	MetricObserve MetricKind = "observe"
	// MetricExpire takes away all that the hook has put into Group before this run. Nothing else of the change counts.
	MetricExpire MetricKind = "expire"
)

// Metric is one change of one of the hook's own metrics. The driver adds the labels module and hook.
type Metric struct {
	Kind   MetricKind        `json:"kind"`
	Name   string            `json:"name,omitempty"`
	Value  float64           `json:"value"`
	Labels map[string]string `json:"labels,omitempty"`
	// Group is what a later MetricExpire takes the series away by; empty: nothing
	// does. Groups of different hooks have nothing to do with each other.
	Group string `json:"group,omitempty"`
	// Buckets are the upper bounds of a histogram, growing; nil: the default ones (MetricObserve).
	Buckets []float64 `json:"buckets,omitempty"`
}
