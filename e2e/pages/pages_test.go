//go:build e2e

package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/e2e/cluster"
)

const ns = "starling-system" // that of pages

// runOfPages is the run that pages name.
const runOfPages = "k3f9-12"

// pods has the pods of the cluster be processes of this machine: those of Starling have the rights of its
// ServiceAccount.
func (w *walk) pods() *cluster.Pods {
	w.t.Helper()
	reviews := cluster.Balance(w.t)
	node := w.own.Pods(w.t, cluster.PodsOptions{Node: "worker", Kubeconfig: w.own.TokenKubeconfig(w.t, ns, "starling"), Webhooks: []string{"--webhook-url=https://" + reviews.Address()}})
	node.Serve(reviews, ns, "starling", "webhooks")
	return node
}

// cordon has pods come to the node of [walk.pods] alone.
func (w *walk) cordon() {
	w.also("kubectl cordon fake-0", "cordoned")
}

// also runs a command that a page tells of in a sentence.
func (w *walk) also(command, says string) {
	w.t.Helper()
	w.run("besides", command, step{says: says})
}

// docs/on-a-cluster.md promises: each of its commands does what it says, from the install to the way out.
func TestPageOnACluster(t *testing.T) {
	w := begin(t)
	w.write(map[string]string{"volume.yaml": volume("web")})
	w.other = append(w.other, "--from-file=…", "--from-file=module.star=addons/web/module.star --from-file=nodes.star=addons/web/hooks/nodes.star")
	w.page("docs/on-a-cluster.md", Pods, map[string]step{
		"kubectl apply -f deploy/": {before: w.cordon, after: func() { w.pods() }},
		`kubectl -n starling-system patch configmap starling --type merge -p '{"data": {"hello": "greting`: {after: func() {
			w.also("kubectl get modules", "greting")
		}},
		"kubectl -n hello get configmap hello":                 {says: "Good morning"},
		"starling logs -f hello --context production":          {follows: true},
		"kubectl -n starling-system patch deployment starling": {after: func() { w.also("kubectl wait --for=delete module/hello --timeout=2m", "") }},
		"kubectl get validatingwebhookconfigurations": {says: "forbid-latest", before: func() {
			w.also("kubectl -n starling-system create configmap addons-forbid-latest "+
				"--from-file=addons/forbid-latest/module.star --from-file=$(ls addons/forbid-latest/hooks/*.star | grep -v _test)", "created")
			w.write(map[string]string{"volume.yaml": volume("web", "forbid-latest")})
			w.also("kubectl -n starling-system patch deployment starling --patch-file volume.yaml", "patched")
		}},
		"kubectl create deployment web --image=nginx": {refused: true, says: "denied the request"},
		"kubectl apply -f deploy/prometheus/podmonitor.yaml": {before: func() {
			monitors := strings.NewReplacer("PrometheusRule", "PodMonitor", "prometheusrules", "podmonitors").Replace(prometheusRules)
			w.write(map[string]string{"rules.yaml": prometheusRules + "---\n" + monitors})
			w.also("kubectl apply -f rules.yaml && kubectl wait --for=condition=Established -f rules.yaml", "")
		}},
	})
}

// volume is the patch of the page for modules of one hook each.
func volume(modules ...string) string {
	var out strings.Builder
	out.WriteString("spec:\n  template:\n    spec:\n      volumes:\n      - name: modules\n        configMap: null\n        projected:\n          sources:\n")
	for _, m := range modules {
		hook := map[string]string{"web": "nodes.star", "forbid-latest": "images.star"}[m]
		fmt.Fprintf(&out, "          - configMap:\n              name: addons-%s\n              items:\n              - {key: module.star, path: %s/module.star}\n              - {key: %s, path: %s/hooks/%s}\n", m, m, hook, m, hook)
	}
	return out.String()
}

// prometheusRules is the kind that the operator of Prometheus brings.
const prometheusRules = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: PrometheusRule, plural: prometheusrules}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The pages on running Starling promise: each of their commands does what it says, from the install to the removal.
// So do those of other pages that ask pods.
func TestPageOperations(t *testing.T) {
	w := begin(t)
	var node *cluster.Pods
	leader := func() string {
		var name string
		cluster.Eventually(t, soon, "a pod leads", func() error {
			out, err := w.sh("kubectl -n starling-system get pods -l starling.dev/role=leader -o jsonpath='{.items[0].metadata.name}'")
			if name = out; err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		return name
	}
	others := func() {
		w.page("docs/modules.md", Operations, nil)
		w.page("docs/charts.md", Operations, nil)
		w.page("docs/commands.md", Operations, nil)
		w.write(map[string]string{"old.yaml": oldRelease, "flux.yaml": fluxRelease})
		w.page("docs/from-addon-operator.md", Operations, map[string]step{"kubectl get configmaps": {
			before: func() { w.also("kubectl create namespace addon-operator; kubectl apply -f old.yaml", "") }, says: "created",
		}})
		w.page("docs/from-flux.md", Operations, map[string]step{"kubectl get secrets": {
			before: func() {
				w.also("kubectl create namespace flux-system; kubectl create namespace web; kubectl apply -n flux-system -f flux.yaml", "")
			}, says: "created",
		}})
		var run string
		w.page("docs/replay.md", Operations, map[string]step{
			"starling get runs --failed": {before: func() {
				pod := leader()
				cluster.Eventually(t, soon, "a run is recorded", func() error {
					out, err := w.sh("starling get runs -o jsonpath='{[0].id}' --context production --pod " + pod)
					if run = strings.TrimSpace(out); err != nil || run == "" {
						return fmt.Errorf("%w: %s", err, out)
					}
					return nil
				})
				w.other = append(w.other, runOfPages, run)
				w.also("cp -r "+node.Folder(pod, "/state")+" copied", "")
			}},
		})
	}
	w.page("docs/install.md", Operations, map[string]step{
		"kubectl apply -f deploy/": {before: w.cordon, after: func() {
			node = w.pods()
			w.also("kubectl -n starling-system rollout status deployment/starling", "")
		}},
	})
	w.page("docs/monitoring.md", Operations, map[string]step{
		"starling logs -f hello --context production": {follows: true},
	})
	w.page("docs/replicas.md", Operations, map[string]step{
		"while ": {follows: true, before: func() {
			w.also("kubectl apply -f examples/webhooks/backups/crds/ && kubectl wait --for=condition=Established crd --all", "")
		}},
		"kubectl -n starling-system rollout restart": {after: func() {
			w.also("kubectl -n starling-system rollout status deployment/starling", "")
		}},
	})
	w.page("docs/upgrade.md", Operations, map[string]step{
		"kubectl -n starling-system scale deployment starling": {before: others},
	})
}

// oldRelease is a record as Helm keeps it with HELM_DRIVER=configmap.
const oldRelease = `apiVersion: v1
kind: ConfigMap
metadata: {name: sh.helm.release.v1.web.v1, namespace: addon-operator, labels: {owner: helm, name: web, status: deployed, version: "1"}}
data: {release: H4sIAAAAAAAA}
`

// fluxRelease is a record as Flux keeps it.
const fluxRelease = `apiVersion: v1
kind: Secret
type: helm.sh/release.v1
metadata: {name: sh.helm.release.v1.web.v1, labels: {owner: helm, name: web, status: deployed, version: "1"}}
stringData: {release: H4sIAAAAAAAA}
`

// docs/install.md promises: helm installs and upgrades the chart by its commands.
func TestPageByHelm(t *testing.T) {
	w := begin(t)
	w.page("docs/install.md", ByHelm, map[string]step{
		"helm install starling":           {says: "STATUS: deployed"},
		"helm upgrade --install starling": {says: "REVISION: 2"},
	})
}

// Each README of an example promises: its commands do what they say. So do those of README.md and CONTRIBUTING.md
// that run a starling.
func TestReadmesOfExamples(t *testing.T) {
	w := begin(t)
	address := cluster.Address()
	w.other = append(w.other, "https://127.0.0.1:9443", fmt.Sprintf("https://%s --webhook-address %s", address, address),
		"0.0.0.0:8080", "127.0.0.1:0", "--modules /modules", "--modules addons", "make run", "starling run --modules examples/quickstart")
	runs := func(example string) func() {
		return func() { w.inBackground("starling run --modules examples/" + example) }
	}
	steps := map[string]map[string]step{
		"docs/reload.md":  {"starling run --modules /modules --reload=false": {follows: true}, "starling run --modules /modules": {follows: true}},
		"CONTRIBUTING.md": {"kubectl --kubeconfig": {before: func() { w.waitFile("kc") }}},
		"examples/secret-copier/README.md": {
			"kubectl create secret":  {before: runs("secret-copier")},
			"kubectl get secrets -A": {says: "registry"},
		},
		"examples/quickstart/README.md":  {"kubectl -n hello get": {says: "deployment.apps/hello"}},
		"examples/application/README.md": {"kubectl get apps": {says: "blog"}},
		"examples/webhooks/README.md": {
			"kubectl get backup nightly": {says: "apiVersion: example.starling.dev/v1\n"},
			`kubectl patch backup nightly --type merge -p '{"spec": {"keep": {"days": 3}}}'`:   {refused: true, says: "denied the request"},
			`kubectl patch backup nightly --type merge -p '{"spec": {"keep": {"days": 100}}}'`: {says: "Warning: "},
		},
		"examples/per-object/README.md": {"kubectl -n websites get configmap": {says: "blog"}},
	}
	w.pages(Examples, "starling get modules | grep -E ' (ready|off) '", steps)
}

// waitFile waits until a file is there.
func (w *walk) waitFile(name string) {
	cluster.Eventually(w.t, soon, name+" is there", func() error {
		_, err := os.Stat(filepath.Join(w.dir, name))
		return err
	})
}

// Commands that ask a starling of this machine, or a cluster, do so as they stand in their pages.
func TestCommandsBesideAStarling(t *testing.T) {
	w := begin(t)
	w.also("kubectl create namespace "+ns, "created")
	w.inBackground("starling run --modules addons")
	w.also("kubectl wait --for=condition=Ready module/hello module/web --timeout=1m", "")
	var run string
	cluster.Eventually(t, soon, "a run of web is recorded", func() error {
		out, err := w.sh("starling get runs web -o jsonpath='{[0].id}'")
		if run = strings.TrimSpace(out); err != nil || run == "" {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	w.other = append(w.other, runOfPages, run, "render ingress-nginx ", "render hello ")
	w.pages(BesideStarling, "starling get replicas", map[string]map[string]step{
		"docs/commands.md":   {"starling get modules -w": {follows: true}},
		"docs/monitoring.md": {"starling get queues -w": {follows: true}, "starling logs -f": {follows: true}},
		"docs/replicas.md": {
			"starling run --modules addons --name edge": {follows: true}, "starling run --modules addons --name rest": {follows: true},
		},
		"docs/troubleshooting.md": {"starling logs -f": {follows: true}},
	})
}

// docs/dev.md promises: a starling dev answers while it follows a tree.
func TestPageDev(t *testing.T) {
	w := begin(t)
	answers := func() { w.also("starling get modules --dev", "ready") }
	w.pages(Dev, "starling get modules --dev", map[string]map[string]step{
		"docs/dev.md":      {"starling tui --dev": {before: answers}, "starling dev addons": {after: answers}, "starling dev addons -f": {follows: true}},
		"docs/commands.md": {"starling tui --dev": {before: func() { w.inBackground("starling dev addons"); answers() }}},
	})
}
