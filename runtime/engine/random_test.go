package engine

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever happens on the way, in whatever order and however late, with failures
// and crashes: the same final inputs end in the same state, and then it is quiet.
func TestRandomOrdersSettleTheSame(t *testing.T) {
	for seed := range seeds(600) {
		r := rand.New(rand.NewPCG(seed, 1))
		last := truth{nodes: r.Int64N(4), wanted: r.IntN(2) == 0, config: goodConfigs()[r.IntN(len(goodConfigs()))]}

		plain := newChaos(t, nil)
		plain.truth = last
		plain.boot()
		plain.settle()

		c := newChaos(t, r)
		c.truth = truth{nodes: r.Int64N(4), config: goodConfigs()[0]}
		c.boot()
		for range 40 + r.IntN(160) {
			c.disturb()
		}
		c.calm = true
		for id := range c.live {
			c.inbox = append(c.inbox, WatchFailed{ID: id})
		}
		c.change(func(t *truth) { *t = last })
		c.settle()

		if diff := cmp.Diff(plain.final(), c.final()); diff != "" {
			c.complain("the end differs (-in order, +in disorder):\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("seed %d, final inputs %+v; the last of what happened:\n%s", seed, last, strings.Join(c.log[max(0, len(c.log)-80):], "\n"))
		}
	}
}

// truth is what the cluster says.
type truth struct {
	nodes  int64
	wanted bool // the global hook switches the module dyn on
	config Config
	tree   int // which of [trees]
}

func goodConfigs() []Config {
	var out []Config
	for _, data := range []map[string]string{
		{}, {"db": "size: 1"}, {"db": "size: 2", "global": "g: 1"}, {"dbEnabled": "false", "quickEnabled": "false"}, {"webEnabled": "false", "db": "size: 1"},
	} {
		out = append(out, Config{State: ConfigPresent, Data: data})
	}
	return out
}

func badConfigs() []Config {
	return []Config{
		{State: ConfigMissing}, {State: ConfigUnreadable, Reason: "forbidden"},
		{State: ConfigPresent, Data: map[string]string{"db": "- a list", "webEnabled": "false"}},
		{State: ConfigPresent, Data: map[string]string{"dbEnabled": "yes", "global": "g: 3"}},
	}
}
