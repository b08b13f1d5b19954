package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// Metrics that sections count.
const (
	runsMetric     = "starling_hook_runs_total"
	requestsMetric = "starling_api_requests_total"
	actionsMetric  = "starling_release_actions_total"
)

// starling is a `starling run` under measurement.
type starling struct {
	*cluster.Starling
	b       *bench
	name    string
	address string
}

// instance says what is started.
type instance struct {
	name string
	// folder is that of its modules, and of its state with another ending; the name when empty.
	folder string
	// tree is the content of its files by path; nil: those of an earlier start.
	tree map[string]string
	args []string
}

// start starts a process of an instance, and waits for nothing but its address. Modules of several instances have
// the same names, so only [thousand] keeps Module objects.
func (b *bench) start(i instance) *starling {
	if i.folder == "" {
		i.folder = i.name
	}
	s := &starling{b: b, name: i.name}
	s.Starling = b.cluster.Starling(b, cluster.Options{
		Modules: b.writeTree(i.folder, i.tree), Namespace: operatorNamespace, Name: i.name, Kubeconfig: b.kubeconfig,
		StateDir: filepath.Join(b.dir, i.folder+".state"), Args: i.args, Program: b.program,
		ModuleObjects: i.name == thousand,
	})
	s.Process().Watch(b.broken)
	b.Cleanup(s.stop)
	b.wait("the address of starling", func() bool {
		s.address = listenAddress(s.Output())
		return s.address != ""
	})
	return s
}

// startReady starts an instance, and waits until every module has once been released.
func (b *bench) startReady(name string, tree map[string]string, args ...string) *starling {
	s := b.start(instance{name: name, tree: tree, args: args})
	s.ready()
	return s
}

func (s *starling) stop() { s.b.stop(s.Process()) }

// through has all that is started reach the API server by another kubeconfig, until the
// function that it returns is called. The client of the bench keeps its way.
func (b *bench) through(kubeconfig string) (back func()) {
	before := b.kubeconfig
	b.kubeconfig = kubeconfig
	return func() { b.kubeconfig = before }
}

// listenAddress finds the address in the first line of the log.
func listenAddress(log string) string {
	for line := range strings.Lines(log) {
		var said struct{ Listen string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Listen != "" {
			return said.Listen
		}
	}
	return ""
}

// page reads a page of the process; "" when it does not answer with 200.
func (s *starling) page(path string) string {
	resp, err := http.Get("http://" + s.address + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// ready waits until every module has once been released.
func (s *starling) ready() {
	s.b.wait("the modules of "+s.name+" are ready", func() bool { return s.page("/readyz/modules") != "" })
}

// asks reads `starling get what`, as people do.
func asks[T any](s *starling, what string) (answer T) {
	out, err := s.Get(s.b.ctx, what)
	s.b.check(err)
	s.b.check(json.Unmarshal(out, &answer))
	return answer
}

// holds waits until the snapshots of all hooks hold n objects together.
func (s *starling) holds(n int) {
	s.b.waitEvery(time.Second/2, "the snapshots hold all objects", func() bool {
		have := 0
		for _, h := range asks[[]status.Hook](s, "hooks") {
			for _, size := range h.Snapshots {
				have += size
			}
		}
		return have == n
	})
}

// runs returns how many runs all hooks had so far.
func (s *starling) runs() int { return s.counted(runsMetric) }

// ran waits until hooks have had so many runs. Each question costs the process some of its processor time.
func (s *starling) ran(n int, every time.Duration) {
	s.b.waitEvery(every, "all runs", func() bool { return s.runs() >= n })
}

// rests waits until no run has come for two seconds: what a first pass has made has events, too.
func (s *starling) rests() {
	s.b.waitSteady("the hooks rest", func() { s.b.pause(2 * time.Second) }, s.runs)
}

// counted returns the sum of a metric's series.
func (s *starling) counted(metric string) int {
	text := s.page("/metrics")
	if text == "" {
		s.b.Fatalf("%s does not answer at /metrics", s.name)
	}
	return sumOf(text, metric)
}

// costs returns by how much metrics grow while do works.
func (s *starling) costs(do func(), metrics ...string) []int {
	costs := make([]int, len(metrics))
	for i, metric := range metrics {
		costs[i] = -s.counted(metric)
	}
	do()
	for i, metric := range metrics {
		costs[i] += s.counted(metric)
	}
	return costs
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

// startBare starts a bare side, which is this program.
func (b *bench) startBare(side string, args ...string) *cluster.Process {
	self, err := os.Executable()
	b.check(err)
	p, err := cluster.StartProcess(nil, self, append([]string{side, "-kubeconfig", b.kubeconfig}, args...)...)
	b.check(err)
	b.Cleanup(func() { b.stop(p) })
	p.Watch(b.broken)
	return p
}

// startBareReady waits for the line that the bare side prints when it watches, and returns that too.
func (b *bench) startBareReady(side string, args ...string) (*cluster.Process, string) {
	p := b.startBare(side, args...)
	b.wait(side+" watches", func() bool { return strings.HasSuffix(p.Output(), "\n") })
	return p, strings.TrimSpace(p.Output())
}
