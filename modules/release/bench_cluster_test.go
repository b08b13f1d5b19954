//go:build e2e

package release

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/starling-operator/starling/modules/chart"
)

const (
	benchReleases = 100
	benchWorkers  = 8
)

// BenchmarkReleases installs 100 charts of four objects each and converges them
// unchanged, beside the plain Helm SDK in a loop of as many workers. Run it with
// -benchtime 1x.
func BenchmarkReleases(b *testing.B) {
	for range b.N {
		plain := setup(b)
		plain.makeApps()
		plainFirst := plain.each(func(i int) error { return plain.plainHelm(i, false) })
		plainAgain := plain.each(func(i int) error { return plain.plainHelm(i, true) })

		f := setup(b)
		one := func(i int) error { _, err := f.Reconcile(b.Context(), f.numbered(i)); return err }
		first := f.each(one)
		requests := f.requests.Load()
		again := f.each(one)
		requestsAgain := f.requests.Load() - requests
		f.Manager = f.manager()
		requests = f.requests.Load()
		restart := f.each(one)
		requestsRestart := f.requests.Load() - requests

		b.ReportMetric(first.Seconds(), "s/first")
		b.ReportMetric(again.Seconds(), "s/unchanged")
		b.ReportMetric(restart.Seconds(), "s/restart")
		b.ReportMetric(plainFirst.Seconds(), "s/helm-first")
		b.ReportMetric(plainAgain.Seconds(), "s/helm-unchanged")
		b.Logf("%d releases of 4 objects, %d workers: first install %s (%d requests), unchanged %s (%d requests), after a restart %s (%d requests); plain helm %s and %s",
			benchReleases, benchWorkers, round(first), requests, round(again), requestsAgain, round(restart), requestsRestart, round(plainFirst), round(plainAgain))
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

func (f *fixture) numbered(i int) Target {
	target := f.target(map[string]any{"color": fmt.Sprint(i)}, fourObjects)
	target.Module, target.Name = name("m", i), name("m", i)
	return target
}

// each runs do for all releases and takes the time.
func (f *fixture) each(do func(i int) error) time.Duration {
	start := time.Now()
	work := make(chan int)
	var wg sync.WaitGroup
	for range benchWorkers {
		wg.Go(func() {
			for i := range work {
				if err := do(i); err != nil {
					f.t.Error(err)
				}
			}
		})
	}
	for i := range benchReleases {
		work <- i
	}
	close(work)
	wg.Wait()
	return time.Since(start)
}

// plainHelm is what a program does that uses the Helm SDK as its documentation
// shows.
func (f *fixture) plainHelm(i int, upgrade bool) error {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &shared.Kubeconfig, &f.apps
	cfg := new(action.Configuration)
	if err := cfg.Init(flags, f.apps, "secret", func(string, ...any) {}); err != nil {
		return err
	}
	target := f.numbered(i)
	ch, err := chart.Installable(target.Chart)
	if err != nil {
		return err
	}
	if upgrade {
		act := action.NewUpgrade(cfg)
		act.Namespace = f.apps
		_, err = act.Run(target.Name, ch, target.Values)
		return err
	}
	act := action.NewInstall(cfg)
	act.ReleaseName, act.Namespace = target.Name, f.apps
	_, err = act.Run(ch, target.Values)
	return err
}
