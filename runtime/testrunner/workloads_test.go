package testrunner

import (
	"os"
	"strings"
	"testing"
)

// The test that the page of tests shows passes.
func TestWorkloadsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/test.md")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(page), "```python\n") {
		if text, _, ok := strings.Cut(block, "```"); ok && strings.Contains(text, "t.workloads(") {
			runTests(t, map[string]string{"web/module.star": "module()\n", "web/page_test.star": text})
			return
		}
	}
	t.Error("docs/test.md shows no test with t.workloads()")
}

// Hooks see workloads move as in a cluster with its controllers.
func TestWorkloadsMoveInTests(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module()\n",
		"web/hooks/a.star": `
def available(d):
    return d.metadata.name if d.get("status.availableReplicas") == d.spec.replicas else None

def ready(ctx):
    values.set("internal.ready", [d for d in ctx.snapshots["web"] if d])

hook(ready, on = [k8s.watch("apps/v1", "Deployment", name = "web", filter = available)])
`,
		"web/a_test.star": `
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "job:1"}]}}}
"""

def test_a_deployment_gets_ready(t):
    t.workloads(ready_after = "5s")
    t.start()
    t.cluster.apply(WEB)
    t.expect(len(t.cluster.list("v1", "Pod"))).equals(2)
    t.expect(t.values.get("internal.ready")).equals([])
    t.clock.advance("5s")
    t.expect(t.values.get("internal.ready")).equals(["web"])
    t.quiet(requests = True)

def test_a_pod_fails(t):
    t.workloads()
    t.start()
    t.cluster.apply(WEB)
    t.pods.fail(labels = {"app": "web"})
    t.expect(t.values.get("internal.ready")).equals([])
    t.pods.recover(labels = {"app": "web"})
    t.clock.advance("10s")
    t.expect(t.values.get("internal.ready")).equals(["web"])

def test_a_job_fails(t):
    t.workloads(completes_after = "10s")
    t.start()
    t.jobs.fail("import")
    t.cluster.apply(JOB)
    t.clock.advance("10s")
    t.expect(t.cluster.get("batch/v1", "Job", "import", "default").status.failed).equals(1)

def test_words_for_mistakes(t):
    t.expect_error(lambda: t.pods.fail(), "call t.workloads\\(\\) first")
    t.expect_error(lambda: t.workloads(ready_after = "1500ms"), "whole seconds")
    t.workloads()
    t.expect_error(lambda: t.pods.fail(exit_code = 0), "between 1 and 255")
    t.expect_error(lambda: t.pods.recover(labels = "app=web"), "no Pods with the labels")
    t.expect_error(lambda: t.jobs.fail("dump-*"), "is no name of a Job: t.jobs.fail takes one Job")
    t.expect_error(lambda: t.stale("configmap"), "did you mean ConfigMap")

def test_a_stale_list(t):
    t.workloads()
    t.cluster.apply(WEB)
    t.start()
    t.expect(t.values.get("internal.ready")).equals(["web"])
    t.stale("Deployment")
    t.cluster.delete("apps/v1", "Deployment", "web", "default")
    t.restart()
    t.expect(t.values.get("internal.ready")).equals([])
`,
	})
}

// A hook that makes a Job of what is ready ends in the same state in each order, whenever the
// controllers of the cluster have their turn.
func TestWorkloadsInOtherOrders(t *testing.T) {
	runOrders(t, 15, map[string]string{
		"web/module.star": "module(grants = [grant(\"batch/v1\", \"Job\", verbs = [\"apply\"], namespaces = [\"default\"])])\n",
		"web/hooks/a.star": `
def migrate(ctx):
    for d in ctx.snapshots["web"]:
        if d["available"]:
            container = {"name": "main", "image": "migrate:1"}
            k8s.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate-" + d["name"], "namespace": "default"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}})
    values.set("internal.migrated", [j["name"] for j in ctx.snapshots["jobs"] if j["done"]])

hook(migrate, on = [
    k8s.watch("apps/v1", "Deployment", name = "web", filter = lambda o: {"name": o.metadata.name, "available": o.get("status.availableReplicas") == o.spec.replicas}),
    k8s.watch("batch/v1", "Job", name = "jobs", filter = lambda o: {"name": o.metadata.name, "done": o.get("status.succeeded") == 1}),
])
`,
		"web/a_test.star": `
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""

def test_a_job_follows_a_deployment(t):
    t.workloads(ready_after = "5s", completes_after = "7s")
    t.start()
    t.cluster.apply(WEB)
    t.clock.advance("12s")
    t.expect(t.values.get("internal.migrated")).equals(["migrate-web"])
    t.cluster.patch("apps/v1", "Deployment", "web", "default", merge = {"spec": {"template": {"metadata": {"labels": {"version": "two"}}}}})
    t.pods.fail(labels = {"version": "two"}, times = 2)
    t.clock.advance("1m")
    t.expect(t.cluster.get("apps/v1", "Deployment", "web", "default").status.updatedReplicas).equals(3)
`,
	})
}

// A process that asks though nothing has changed is found.
func TestRequestsAtRest(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star":  "module(grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"get\"], namespaces = [\"default\"])])\n",
		"web/hooks/a.star": "def look(ctx):\n    k8s.get(\"v1\", \"ConfigMap\", \"a\", \"default\")\n\nhook(look, on = [schedule(\"@every 30s\")])\n",
		"web/a_test.star":  "def test_a(t):\n    t.start()\n    t.quiet()\n    t.expect_error(lambda: t.quiet(requests = True), \"2 requests in 1m0s .* GET /api/v1/namespaces/default/configmaps/a\")\n",
	})
}
