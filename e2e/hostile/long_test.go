package hostile

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// longs are lists that an author can make as long as a file may be.
var longs = []attack{
	{name: "long-receive", files: map[string]string{"hooks/a.star": "hook(lambda ctx: None, name = \"x\", on = [http.receive(\"/long/%d\" % i, public = True) for i in range(3000)])\n"}},
	{name: "long-validate", files: map[string]string{"hooks/a.star": "[hook(lambda ctx: None, name = \"h%d\" % i, on = [k8s.validate(\"$NS.example.org/v1\", \"K%d\" % i, failure_policy = \"ignore\", name = \"v%d\" % i)]) for i in range(1000)]\n"}},
	{name: "long-requires", says: []string{"long-none"}, files: map[string]string{"module.star": "module(enabled = True, requires = [\"long-none-%d\" % i for i in range(5000)])\n"}},
	{name: "long-after", files: map[string]string{"module.star": "module(enabled = True, after = [\"long-none-%d\" % i for i in range(5000)])\n"}},
	{name: "long-exports", files: map[string]string{"module.star": "module(enabled = True, exports = [\"a.b%d\" % i for i in range(20000)])\n", "values.yaml": "a: {b1: x}\n"}},
	{name: "long-grants", files: map[string]string{
		"module.star":  "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], names = [\"n%d\" % i]) for i in range(20000)])\n",
		"hooks/a.star": "def run(ctx):\n    requeue(\"100ms\")\n    for i in range(2000):\n        k8s.get(\"v1\", \"Secret\", \"n%d\" % (i % 5))\n\nhook(run, on = [startup()])\n"}},
	{name: "long-for-each", objects: small(300), files: map[string]string{"hooks/a.star": "def run(ctx):\n    requeue(\"100ms\")\n\n" +
		"[hook(run, name = \"h%d\" % i, for_each = \"all\", parallel = 8, queue = \"q%d\" % (i % 8), on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"all\", namespaces = [\"$NS\"])]) for i in range(40)]\n"}},
	{name: "long-writes", files: map[string]string{
		"module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"delete\"])])\n",
		"hooks/a.star": "def run(ctx):\n    requeue(\"100ms\")\n    for i in range(5000):\n        k8s.delete(\"v1\", \"ConfigMap\", \"none-%d\" % i)\n\n" +
			"[hook(run, name = \"h%d\" % i, queue = \"q%d\" % i, on = [startup()]) for i in range(8)]\n"}},
}

// Long lists cost a healthy module no beat.
func TestLongLists(t *testing.T) { underAttack(t, longs...) }

// hoards are modules that together want all that modules share.
func hoards() (all []attack) {
	for i := range 6 {
		all = append(all, attack{name: fmt.Sprintf("hoards-metrics-%d", i), files: map[string]string{"hooks/a.star": "def run(ctx):\n    for i in range(9900):\n        metrics.set(\"hoarded\", i, labels = {\"i\": str(i)})\n\nhook(run, on = [startup()])\n"}})
	}
	return append(all,
		attack{name: "hoards-messages", files: map[string]string{"module.star": "module(enabled = True, http = [\"127.0.0.1:1\"])\n",
			"hooks/a.star": "def run(ctx):\n    requeue(\"100ms\")\n    for i in range(30):\n        http.send(\"POST\", \"http://127.0.0.1:1/\", json = {\"a\": \"x\" * (1 << 19)})\n\nhook(run, on = [startup()])\n"}},
		attack{name: "hoards-config", says: []string{"KiB"}, files: map[string]string{"module.star": "module(enabled = True, config = [\"a\"])\n",
			"hooks/a.star": "def run(ctx):\n    for i in range(500):\n        config.set(\"a.k%d\" % i, \"x\" * 300)\n\nhook(run, on = [startup()])\n"}},
	)
}

// Each module has its part of all that modules share, whatever the others take.
func TestHoards(t *testing.T) {
	a := newArena(t)
	a.start()
	beats := a.beat(a.waitBeat())
	all := hoards()
	for _, each := range all {
		a.write(each.tree())
	}
	for _, each := range all {
		a.waitSays(each)
	}
	shown := func() string {
		resp, err := http.Get("http://" + a.process.Address() + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	a.eventually("all metrics are made that may be", func() error {
		if n := strings.Count(shown(), "\nhoarded{"); n < 49_900 {
			return fmt.Errorf("%d are shown", n)
		}
		return nil
	})
	a.write(map[string]string{
		"modest/module.star":  "module(enabled = True, config = [\"a\"])\n",
		"modest/hooks/a.star": "def run(ctx):\n    metrics.set(\"modest\", 1)\n    config.set(\"a\", \"x\" * 100)\n\nhook(run, on = [startup()])\n",
	})
	a.eventually("a module that wants little has it", func() error {
		if !strings.Contains(shown(), "\nmodest{") {
			return fmt.Errorf("its metric is not shown")
		}
		said, err := a.said("modest")
		if err == nil && strings.TrimSpace(said) != "ready" {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
	beats.end()
	a.stop()
}
