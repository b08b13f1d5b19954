package live

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A run whose effects cannot be written has failed, and the metric that people are alerted
// by counts it.
func TestAFailedCommitCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
			"web/hooks/a.star": "hook(lambda ctx: k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}}), name = \"a\", on = [startup()])\n",
		})
		f.store.FailNext("apply", "ConfigMap", apierrors.NewInternalError(errors.New("refused")), 2)
		f.start()
		f.waitReady()
		time.Sleep(time.Minute)
		id := f.driver.generation.Load().Modules["web"].Hooks[0].ID
		if n := testutil.ToFloat64(f.driver.metrics.failures.WithLabelValues("web", id)); n != 2 {
			t.Errorf("%v failures are counted, not 2", n)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
