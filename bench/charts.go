package main

import (
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/chart"
)

// charts evaluates a chart in the process beside Starling's, and in this one.
func (b *bench) charts() {
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
		cluster.DieWithParent(child)
		return child
	}})
	evaluate := func(r *chart.Renderer) func() error {
		return func() error {
			out := r.Offline(b.ctx, target, chartutil.DefaultCapabilities, nil)
			if out.Err == nil && len(out.Files) != 4 {
				return fmt.Errorf("the chart makes %d files", len(out.Files))
			}
			return out.Err
		}
	}
	began := time.Now()
	b.check(evaluate(beside)())
	first := time.Since(began)
	b.Cleanup(func() { _ = child.Process.Kill() }) // it may have ended
	with, without := b.inTurn(b.size(101, 11), evaluate(beside), evaluate(nil))
	addBeside(b, "a chart of 4 objects evaluated beside the process, and in it", millis, middle(with), middle(without), 0)
	b.add("… the first one, with the start of the process", millis(first), "")
	if runtime.GOOS == "linux" {
		m := b.memory(child.Process.Pid)
		b.add(fmt.Sprintf("… resident memory of that process (of the binary %s)", mebibytes(m.File)), mebibytes(m.Now), "")
	}
}
