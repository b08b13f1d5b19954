// Package e2e holds Starling to its promises on a real control plane. Every test has
// a namespace, an instance, a module tree and a ServiceAccount, whose
// role is the least that its tree needs: see [least].
package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// soon is how long anything may take on a slow machine that runs all tests at once, and
// other programs beside them; alone it takes well under a second. It is no measure of
// speed: only a test that fails waits so long.
const soon = 4 * time.Minute

var shared *cluster.Cluster

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, &shared)) }
