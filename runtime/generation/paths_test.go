package generation

import (
	"strings"
	"testing"
)

func TestTwoHooksMayNotReceiveAtOnePath(t *testing.T) {
	hook := func(paths ...string) string {
		src := "def f(ctx):\n  pass\n"
		for _, p := range paths {
			src += "hook(f, name = \"" + p[1:] + "\", on = [http.receive(\"" + strings.TrimSuffix(p, "2") + "\", public = True)])\n"
		}
		return src
	}
	g := load(t, map[string]string{
		"one/hooks/a.star":   hook("/shared", "/one"),
		"two/hooks/a.star":   hook("/shared"),
		"self/hooks/a.star":  hook("/self", "/self2"),
		"good/hooks/a.star":  hook("/good", "/good/x"),
		"all/hooks/a.star":   hook("/global"),
		"global/a.star":      hook("/global"),
		"inone/hooks/a.star": "def f(ctx):\n  pass\nhook(f, on = [http.receive(\"/i\", public = True), http.receive(\"/i\", public = True)])\n",
	})
	for name, want := range map[string]string{
		"one":   "one/hooks/a.star:3: hook one/shared receives requests at /shared, as hook two/shared does (two/hooks/a.star:3); give one another path",
		"two":   "two/hooks/a.star:3: hook two/shared receives requests at /shared, as hook one/shared does (one/hooks/a.star:3); give one another path",
		"self":  "self/hooks/a.star:4: hook self/self2 receives requests at /self, as hook self/self does (self/hooks/a.star:3); give one another path",
		"inone": "inone/hooks/a.star:3: hook inone/hooks/a.star:f receives requests at /i, as hook",
		"all":   "all/hooks/a.star:3: hook all/global receives requests at /global, as hook global/global does (global/a.star:3)",
		"good":  "",
	} {
		err := g.Modules[name].Err
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if g.Global.Err == nil {
		t.Error("the global hook has no error")
	}
}
