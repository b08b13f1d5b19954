package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/starling-operator/starling/modules/chart"
)

// measureCharts evaluates a chart in the process beside Starling's, and in this one.
func measureCharts(ctx context.Context, b *bench) error {
	rounds := 101
	if b.quick {
		rounds = 11
	}
	target := chart.Input{
		Module: "web", Name: "web", Namespace: "web", Chart: &chart.Chart{Name: "web"},
		Values: map[string]any{"color": "blue", "replicas": int64(0), "port": int64(80)},
	}
	files := chartFiles("web")
	for _, path := range slices.Sorted(maps.Keys(files)) {
		target.Chart.Files = append(target.Chart.Files, chart.File{Path: path, Data: []byte(files[path])})
	}
	var child *exec.Cmd
	beside := chart.NewRenderer(chart.RendererOptions{Idle: time.Minute, Command: func() *exec.Cmd {
		child = exec.Command(b.program, "evaluate-charts")
		child.Env = []string{"GOMAXPROCS=1"}
		child.SysProcAttr = childAttributes()
		return child
	}})
	evaluate := func(r *chart.Renderer) (time.Duration, error) {
		began := time.Now()
		out := r.Offline(ctx, target, chartutil.DefaultCapabilities)
		if out.Err == nil && len(out.Files) != 4 {
			return 0, fmt.Errorf("the chart makes %d files", len(out.Files))
		}
		return time.Since(began), out.Err
	}
	first, err := evaluate(beside)
	if err != nil {
		return err
	}
	defer func() { _ = child.Process.Kill() }() // it may have ended
	var ours, here []time.Duration
	for range rounds {
		took, err := evaluate(beside)
		if err != nil {
			return err
		}
		ours = append(ours, took)
		if took, err = evaluate(nil); err != nil {
			return err
		}
		here = append(here, took)
	}
	with, without := percentile(ours, 0.5), percentile(here, 0.5)
	b.table.add(row{
		what: "a chart of 4 objects evaluated beside the process, and in it", starling: millis(with), bare: millis(without),
		ratio: times(float64(with) / float64(without)),
	})
	b.table.add(row{what: "… the first one, with the start of the process", starling: millis(first)})
	if runtime.GOOS == "linux" {
		m, err := memoryOf(child.Process.Pid)
		if err != nil {
			return err
		}
		b.table.add(row{what: fmt.Sprintf("… resident memory of that process (of the binary %s)", mebibytes(m.file)), starling: mebibytes(m.now)})
	}
	return nil
}
