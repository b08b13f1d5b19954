package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		tree[name+"/module.star"] = fmt.Sprintf("module(enabled = True, namespace = %q)\n", moduleNamespace)
		for path, text := range chartFiles(name) {
			tree[name+"/chart/"+path] = text
		}
	}
	return tree
}

// chartFiles is a chart of four objects, as people write them.
func chartFiles(name string) map[string]string {
	labels := "  labels:\n    app.kubernetes.io/name: {{ .Release.Name }}\n    app.kubernetes.io/managed-by: {{ .Release.Service }}\n"
	return map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
		"values.yaml": "color: blue\nreplicas: 0\nport: 80\n",
		"templates/configmap.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n" + labels +
			"data:\n  color: {{ .Values.color | quote }}\n",
		"templates/serviceaccount.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}\n" + labels,
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n" + labels +
			"spec:\n  selector:\n    app: {{ .Release.Name }}\n  ports:\n    - port: {{ .Values.port }}\n",
		"templates/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n" + labels +
			"spec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels:\n      app: {{ .Release.Name }}\n" +
			"  template:\n    metadata:\n      labels:\n        app: {{ .Release.Name }}\n    spec:\n" +
			"      serviceAccountName: {{ .Release.Name }}\n      containers:\n        - name: main\n          image: " + chartImage + "\n",
	}
}

// measureModules installs many modules and converges them unchanged after a
// restart, beside the plain Helm SDK.
func measureModules(ctx context.Context, b *bench) error {
	n := 100
	if b.quick {
		n = 10
	}
	if err := b.makeNamespaces(ctx, moduleNamespace, helmNamespace); err != nil {
		return err
	}
	first, err := b.converge(ctx, "modules", n, moduleTree(n))
	if err != nil {
		return err
	}
	b.say("starling, first install: %s, resident %s", seconds(first.sinceStart), mebibytes(first.memory.now))
	again, err := b.converge(ctx, "modules", n, nil)
	if err != nil {
		return err
	}
	b.say("starling, unchanged: %s, resident %s", seconds(again.sinceStart), mebibytes(again.memory.now))
	planned, _, _, err := b.timed(ctx, "plan", "--modules", filepath.Join(b.dir, "modules"),
		"--kubeconfig", b.kubeconfig, "--namespace", operatorNamespace, "--name", "modules")
	if err != nil {
		return err // there were changes, too
	}
	b.say("starling plan, unchanged: %s", seconds(planned))
	plainFirst, err := b.plainHelm(ctx, n, (*plainRelease).install)
	if err != nil {
		return err
	}
	b.say("plain helm, install: %s", seconds(plainFirst))
	plainAgain, err := b.plainHelm(ctx, n, (*plainRelease).upgrade)
	if err != nil {
		return err
	}
	b.say("plain helm, upgrade unchanged: %s", seconds(plainAgain))

	part := func(d, of time.Duration) float64 { return float64(d) / float64(of) }
	b.table.add(row{
		what:     fmt.Sprintf("%d modules of 4 objects, first install", n),
		starling: seconds(first.sinceStart), bare: seconds(plainFirst), ratio: times(part(first.sinceStart, plainFirst)),
		aim: verdict("≤ 0.5×", part(first.sinceStart, plainFirst) <= 0.5),
	})
	b.table.add(row{
		what:     "… unchanged, from the start of the process",
		starling: seconds(again.sinceStart), bare: seconds(plainAgain), ratio: times(part(again.sinceStart, plainAgain)),
		aim: verdict("< 1 s", again.sinceStart < time.Second),
	})
	b.table.add(row{what: "… unchanged, from the lease", starling: seconds(again.sinceLease)})
	b.table.add(row{what: "… unchanged, starling plan", starling: seconds(planned), aim: verdict("< 3 s", planned < 3*time.Second)})
	return b.removeNamespaces(ctx, moduleNamespace, helmNamespace)
}

// converged is how long a start took until every module was released, and the memory then.
type converged struct {
	sinceStart, sinceLease time.Duration
	memory                 memory
}

// converge starts an instance, waits until it is ready, makes sure that every module
// is released, and stops it.
func (b *bench) converge(ctx context.Context, name string, n int, tree map[string]string) (converged, error) {
	var c converged
	s, err := b.startStarling(ctx, name, tree)
	if err != nil {
		return c, err
	}
	if err := s.ready(ctx); err != nil {
		return c, err
	}
	now := time.Now()
	c.sinceStart = now.Sub(s.began)
	lease, err := b.client.CoordinationV1().Leases(operatorNamespace).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return c, err
	}
	if at := lease.Spec.AcquireTime; at != nil {
		c.sinceLease = now.Sub(at.Time)
	}
	var modules []status.Module
	if err := s.status(ctx, "modules", &modules); err != nil {
		return c, err
	}
	for _, m := range modules {
		if m.State != status.ModuleReady || m.Release == nil || m.Release.Revision != 1 {
			return c, fmt.Errorf("module %s is %s (%s), not ready at revision 1", m.Name, m.State, m.Reason)
		}
	}
	if len(modules) != n {
		return c, fmt.Errorf("%d modules are ready, not %d", len(modules), n)
	}
	c.memory, _ = s.memory() // 0 where the system does not tell
	return c, s.stop()
}

// plainRelease is what a program does that uses the Helm SDK as its documentation
// shows: a configuration for each release, and otherwise Helm's defaults.
type plainRelease struct {
	name, chart string
	config      *action.Configuration
}

// plainHelm does the same to all releases and takes the time.
func (b *bench) plainHelm(ctx context.Context, n int, do func(*plainRelease, context.Context) error) (time.Duration, error) {
	began := time.Now()
	err := parallel(ctx, helmWorkers, n, func(i int) error {
		settings := cli.New()
		settings.KubeConfig = b.kubeconfig
		settings.SetNamespace(helmNamespace)
		r := &plainRelease{
			name: moduleName(i), chart: filepath.Join(b.dir, "modules", moduleName(i), "chart"),
			config: new(action.Configuration),
		}
		quiet := func(string, ...any) {}
		if err := r.config.Init(settings.RESTClientGetter(), helmNamespace, "secret", quiet); err != nil {
			return err
		}
		return do(r, ctx)
	})
	return time.Since(began), err
}

func (r *plainRelease) install(ctx context.Context) error {
	chart, err := loader.Load(r.chart)
	if err != nil {
		return err
	}
	install := action.NewInstall(r.config)
	install.ReleaseName, install.Namespace = r.name, helmNamespace
	release, err := install.RunWithContext(ctx, chart, map[string]any{})
	return deployed(release, err)
}

func (r *plainRelease) upgrade(ctx context.Context) error {
	chart, err := loader.Load(r.chart)
	if err != nil {
		return err
	}
	upgrade := action.NewUpgrade(r.config)
	upgrade.Namespace = helmNamespace
	release, err := upgrade.RunWithContext(ctx, r.name, chart, map[string]any{})
	return deployed(release, err)
}

func deployed(r *helmrelease.Release, err error) error {
	if err == nil && r.Info.Status != helmrelease.StatusDeployed {
		err = fmt.Errorf("release %s is %s", r.Name, r.Info.Status)
	}
	return err
}
