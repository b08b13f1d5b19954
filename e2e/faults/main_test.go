// Package faults holds Starling to its promises while the network and the API server fail: each row of
// the table in docs/reliability.md is a test. FAULTS is how many rounds each has, FAULTS_SEED what is drawn
// by lot; without FAULTS it is one short round with seed 1, whose times are not held against anything.
package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// soon is how long anything may take on a busy machine. Only a test that fails waits so long.
const soon = 4 * time.Minute

var (
	shared *cluster.Cluster
	rounds = 1
	long   bool // times count
	seed   = uint64(1)
)

func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv("FAULTS")); err == nil && n > 0 {
		rounds, long, seed = n, true, rand.Uint64N(1_000_000)
	}
	if n, err := strconv.ParseUint(os.Getenv("FAULTS_SEED"), 10, 64); err == nil {
		seed = n
	}
	fmt.Printf("FAULTS=%d FAULTS_SEED=%d\n", rounds, seed)
	os.Exit(cluster.Main(m, &shared))
}
