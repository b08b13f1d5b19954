package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const runsNamespace = "bench-runs"

// snapshotSize is how many objects the snapshot of a hook has that runs again and again.
const snapshotSize = 1000

// again are hooks of one line whose runs ask for the next ones as soon as they may: in
// 100 ms. They are so many, or their objects are, that one is always due.
type again struct {
	name, what string
	body, hook string
}

func agains() []again {
	snapshot := `k8s.watch(
    "v1", "ConfigMap", name = "all", namespaces = ["` + runsNamespace + `"], labels = "bench",
    filter = lambda o: {"name": o.metadata.name, "text": o.data["text"]},
)`
	empty := `[hook(again, name = "again%d" % i, on = [startup()]) for i in range(3000)]`
	each := `[hook(again, name = "again%d" % i, on = [` + snapshot + `], for_each = "all", parallel = 1) for i in range(3)]`
	return []again{
		{"snapshot", fmt.Sprintf("runs a second of three empty hooks with for_each over %d objects", snapshotSize), "pass", each},
		{"reads", "… that read the snapshot object by object", `seen = [o for o in ctx.snapshots["all"] if o["text"] == "x"]`, each},
		{"empty", "runs a second of 3000 empty hooks of one module", "pass", empty},
	}
}

func (a again) tree() map[string]string {
	return map[string]string{
		a.name + "/module.star":      "module(enabled = True)\n",
		a.name + "/hooks/again.star": "def again(ctx):\n    " + a.body + "\n    requeue(\"100ms\")\n\n" + a.hook + "\n",
	}
}

// measureRuns counts the runs of hooks of which one is always due. No write
// and no request is part of them: what is measured is all that Starling does for a run.
func measureRuns(ctx context.Context, b *bench) error {
	lasts := 10 * time.Second
	if b.quick {
		lasts = time.Second
	}
	if err := b.makeNamespaces(ctx, runsNamespace); err != nil {
		return err
	}
	err := parallel(ctx, burstWriters, snapshotSize, func(i int) error {
		_, err := b.client.CoreV1().ConfigMaps(runsNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%d", i), Labels: map[string]string{"bench": "runs"}},
			Data:       map[string]string{"text": strings.Repeat("x", 100)},
		}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range agains() {
		if err := b.measureAgain(ctx, a, lasts); err != nil {
			return err
		}
	}
	return b.removeNamespaces(ctx, runsNamespace)
}

func (b *bench) measureAgain(ctx context.Context, a again, lasts time.Duration) error {
	s, err := b.startStarling(ctx, "again-"+a.name, a.tree())
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	// The first runs make the process as large as it gets.
	if err := pause(ctx, lasts/5); err != nil {
		return err
	}
	began := time.Now()
	runs, err := s.runs()
	if err != nil {
		return err
	}
	used, _ := s.cpu() // 0 where the system does not tell
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	after, err := s.runs()
	if err != nil {
		return err
	}
	took, done := time.Since(began), float64(after-runs)
	if done == 0 {
		return fmt.Errorf("hook again of module %s has not run", a.name)
	}
	what := a.what
	if runtime.GOOS == "linux" {
		now, err := s.cpu()
		if err != nil {
			return err
		}
		what += fmt.Sprintf(" (%.0f µs of processor time a run)", float64((now-used).Microseconds())/done)
	}
	b.table.add(row{what: what, starling: perSecond(done / took.Seconds())})
	b.say("%s: %s", what, perSecond(done/took.Seconds()))
	return s.stop()
}

// runs is how many runs all hooks had so far.
func (s *starling) runs() (int, error) { return s.counted("starling_hook_runs_total") }

// counted is the sum of a metric's series.
func (s *starling) counted(metric string) (int, error) {
	resp, err := http.Get("http://" + s.listen + "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return sumOf(string(text), metric), nil
}

// sumOf adds up all series of a metric.
func sumOf(metrics, name string) int {
	sum := 0.0
	for line := range strings.Lines(metrics) {
		if rest, ok := strings.CutPrefix(line, name+"{"); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, '}')+1:]), 64)
			if err == nil {
				sum += v
			}
		}
	}
	return int(sum)
}
