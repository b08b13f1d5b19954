package generation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// Whatever is in a hook file and a module.star: loading ends, panics nowhere, and
// either registers hooks that have all they need, or says where the mistake is.
func FuzzHookFile(f *testing.F) {
	for _, hooks := range []string{
		hookOnStartup,
		"def f(ctx):\n  pass\nhook(f, on = [startup(order = -3), schedule(\"*/5 1-3 * * MON-FRI\", timezone = \"Europe/Oslo\", jitter = \"1m\", missed = \"once\")])\n",
		"hook(lambda ctx: None, name = \"x\", on = [k8s.watch(\"v1\", \"Pod\", name = \"p\", namespaces = [\"a\"], labels = {\"a\": \"b\"}, fields = \"spec.nodeName=a\", filter = [\"spec.replicas\"], events = [], sync = False)])\n",
		"hook(lambda ctx: None, name = \"x\", on = [k8s.watch(\"apps/v1\", \"Deployment\", filter = \".spec.replicas\", keep = \"object\", require = True, namespace_labels = \"a in (b, c), !d\", exclude_namespaces = [\"kube-*\"])], retry = retry(min = \"1s\", max = \"2s\", factor = 1), min_interval = \"1s\", burst = 3)\n",
		"load(\"@std//k8s.star\", \"is_ready\")\nhook(is_ready, on = [before_helm(order = 1), after_helm(), before_delete(), after_delete()], timeout = \"1h\", queue = \"q\", values = \"keep\", allow_failure = True)\n",
		"hook(lambda ctx: reply(200), name = \"x\", on = [http.receive(\"/x\", secret_ref(\"a\", \"k\"), signature = \"hmac\", header = \"x\", methods = [\"PUT\"]), http.receive(\"/\", public = True)])\n",
		"hook(lambda ctx: None, name = \"x\", on = [k8s.validate(\"v1\", \"Pod\", failure_policy = \"fail\", match_conditions = {\"a\": \"object.spec.x.exists(c, c.y > 1) && request.userInfo.groups.all(g, g != 'x')\"})])\n",
		"x = [0] * (1 << 40)\n", "def f():\n  f()\nf()\n", "hook(on = 7)\n", "hook(hook, on = [hook])\n", "\x00", "#\xff", "load(\"//web/hooks/a.star\", \"x\")\n",
		"k8s.watch(\"v1\", \"Pod\", filtre = 1)\n", "[hook(f, name = str(i)) for i in range(1 << 20) for f in [len]]\n", "schedule(\"0 0 30 2 *\")\n",
	} {
		f.Add(hooks, "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"get\"])])\n")
	}
	for _, module := range []string{
		"module(requires = [\"web\"], after = [\"a\"], namespace = \"x\", timeout = \"1ns\")\ndef enabled():\n  return False\n",
		"module(grants = [grant(\"v1\", \"Secret\", verbs = [\"*\"], namespaces = [\"*\"], names = [], labels = \"a=b\", owned = True)])\nchart_values = len\n",
		"module(http = [\"a.example:80\", \"*.b.example\", \"10.0.0.0/8\", \"[fd00::1]:80\", \"localhost\"])\n",
		"module()\nmodule()\n", "def enabled(*args):\n  pass\n", "module(weight = 1 << 70)\n",
	} {
		f.Add(hookOnStartup, module)
	}
	f.Fuzz(func(t *testing.T, hooks, module string) {
		read, err := tree.Read(fstest.MapFS{
			"web/hooks/a.star": {Data: []byte(hooks)}, "web/module.star": {Data: []byte(module)},
		}, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := Load(context.Background(), Options{Tree: read, Std: stdlib.FS, Number: 1,
			Log: func(string) builtins.Logger { return noLog{} }})
		m := g.Modules["web"]
		var panicked *script.PanicError
		if errors.As(m.Err, &panicked) {
			t.Fatalf("%v\n%s", m.Err, panicked.Stack)
		}
		if m.Err != nil {
			for line := range strings.SplitSeq(m.Err.Error(), "\n") {
				if !strings.HasPrefix(line, "web/") {
					t.Errorf("no place in %q", line)
				}
			}
		}
		for _, h := range m.Hooks {
			if h.Fn == nil || h.Timeout <= 0 || h.Retry.Min <= 0 || g.Hook(h.ID) != h || h.Pos == "" {
				t.Errorf("hook %+v", h.HookDecl)
			}
			for _, b := range h.Bindings {
				if b.Name == "" {
					t.Errorf("binding %+v of hook %s", b, h.ID)
				}
			}
		}
	})
}
