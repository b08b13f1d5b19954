package main

import (
	"fmt"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

const (
	moduleNamespace = "bench-modules"
	helmNamespace   = "bench-helm"
	chartImage      = "example.com/app:1"
	// helmWorkers is how many releases the plain loop works on at once.
	helmWorkers = 8
)

func moduleName(i int) string { return fmt.Sprintf("app-%03d", i) }

// moduleTree is n modules whose charts make four objects each.
func moduleTree(n int) map[string]string {
	tree := map[string]string{}
	for i := range n {
		name := moduleName(i)
		tree[name+"/module.star"] = moduleWith(inNamespace(moduleNamespace))
		addChart(tree, name, chartFiles(name))
	}
	return tree
}

// modules installs many modules and converges them unchanged after a
// restart, beside the plain Helm SDK.
func (b *bench) modules() {
	n := b.size(100, 10)
	b.namespaces(moduleNamespace, helmNamespace)
	first := b.converge("modules", n, moduleTree(n))
	b.say("starling, first install: %s, resident %s", seconds(first.sinceStart), mebibytes(first.memory.Now))
	again := b.converge("modules", n, nil)
	b.say("starling, unchanged: %s, resident %s", seconds(again.sinceStart), mebibytes(again.memory.Now))
	planned, _, _ := b.timed("plan", "--modules", filepath.Join(b.dir, "modules"), // there being changes is an error, too
		"--kubeconfig", b.kubeconfig, "--namespace", operatorNamespace, "--name", "modules")
	b.say("starling plan, unchanged: %s", seconds(planned))
	install := func(name string, c *chart.Chart, config *action.Configuration) (*release.Release, error) {
		step := action.NewInstall(config)
		step.ReleaseName, step.Namespace = name, helmNamespace
		return step.RunWithContext(b.ctx, c, map[string]any{})
	}
	plainFirst := b.plainHelm(n, install)
	b.say("plain helm, install: %s", seconds(plainFirst))
	upgrade := func(name string, c *chart.Chart, config *action.Configuration) (*release.Release, error) {
		step := action.NewUpgrade(config)
		step.Namespace = helmNamespace
		return step.RunWithContext(b.ctx, name, c, map[string]any{})
	}
	plainAgain := b.plainHelm(n, upgrade)
	b.say("plain helm, upgrade unchanged: %s", seconds(plainAgain))

	addBeside(b, fmt.Sprintf("%d modules of 4 objects, first install", n), seconds, first.sinceStart, plainFirst, 0.5)
	b.addRow(row{
		what:     "… unchanged, from the start of the process",
		starling: seconds(again.sinceStart), bare: seconds(plainAgain),
		ratio: times(float64(again.sinceStart) / float64(plainAgain)),
		aim:   verdict("< 1 s", again.sinceStart < time.Second),
	})
	b.add("… unchanged, from the lease", seconds(again.sinceLease), "")
	b.add("… unchanged, starling plan", seconds(planned), verdict("< 3 s", planned < 3*time.Second))
}

// converged is how long a start took until every module was released, and the memory then.
type converged struct {
	sinceStart, sinceLease time.Duration
	memory                 cluster.Memory
}

// converge starts an instance, waits until it is ready, makes sure that every module
// is released, and stops it.
func (b *bench) converge(name string, n int, tree map[string]string) converged {
	s := b.startReady(name, tree)
	now := time.Now()
	c := converged{sinceStart: now.Sub(s.Process().Began), memory: b.memory(s.PID())}
	lease, err := b.client.CoordinationV1().Leases(operatorNamespace).Get(b.ctx, name, metav1.GetOptions{})
	b.check(err)
	if at := lease.Spec.AcquireTime; at != nil {
		c.sinceLease = now.Sub(at.Time)
	}
	modules := asks[[]status.Module](s, "modules")
	for _, m := range modules {
		if m.State != status.ModuleReady || m.Release == nil || m.Release.Revision != 1 {
			b.Fatalf("module %s is %s (%s), not ready at revision 1", m.Name, m.State, m.Reason)
		}
	}
	if len(modules) != n {
		b.Fatalf("%d modules are ready, not %d", len(modules), n)
	}
	s.stop()
	return c
}

// plainStep is what is done to one release.
type plainStep func(string, *chart.Chart, *action.Configuration) (*release.Release, error)

// plainHelm does the same to all releases and takes the time, as a program does that uses the Helm SDK as its
// documentation shows: a configuration for each release, and otherwise Helm's defaults.
func (b *bench) plainHelm(n int, do plainStep) time.Duration {
	began := time.Now()
	b.each(helmWorkers, n, func(i int) error {
		settings, config, name := cli.New(), new(action.Configuration), moduleName(i)
		settings.KubeConfig = b.kubeconfig
		settings.SetNamespace(helmNamespace)
		quiet := func(string, ...any) {}
		if err := config.Init(settings.RESTClientGetter(), helmNamespace, "secret", quiet); err != nil {
			return err
		}
		c, err := loader.Load(filepath.Join(b.dir, "modules", name, "chart"))
		if err != nil {
			return err
		}
		made, err := do(name, c, config)
		if err == nil && made.Info.Status != release.StatusDeployed {
			err = fmt.Errorf("release %s is %s", name, made.Info.Status)
		}
		return err
	})
	return time.Since(began)
}
