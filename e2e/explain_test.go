package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/admin"
)

// The running process tells who gave a value: the user's ConfigMap with its line, a hook
// with its run, also after a restart.
func TestExplain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), map[string]string{
		"web/hooks/a.star": "def f(ctx):\n    values.set(\"mode\", \"auto\")\n\nhook(f, on = [startup()])\n",
	}))
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.configure(map[string]string{"web": "\ntext: one\n"})
	f.waitData("web", map[string]string{"text": "one"})

	f.waitExplained("web", "text",
		"one config ConfigMap "+f.ns+"/starling, web, line 2", "plain chart values.yaml web/values.yaml:1")
	f.waitExplained("web", "mode", "auto hook web/hooks/a.star:f web/hooks/a.star:2 in a run")

	f.restart()
	f.waitReady()
	f.waitExplained("web", "text",
		"one config ConfigMap "+f.ns+"/starling, web, line 2", "plain chart values.yaml web/values.yaml:1")
	f.waitExplained("web", "mode", "auto hook web/hooks/a.star:f web/hooks/a.star:2 in a run")
}

// waitExplained waits until a value has come the way that these lines tell, what wins
// first.
func (f *fixture) waitExplained(module, path string, want ...string) {
	f.t.Helper()
	client := admin.NewClient(admin.ClientOptions{Socket: filepath.Join(f.process.StateDir, "admin", "starling.sock")})
	f.eventually("explain "+module+" "+path, func() error {
		x, err := client.Explain(f.t.Context(), module)
		if err != nil {
			return err
		}
		found, _, err := x.Find(path)
		if err != nil {
			return err
		}
		if got := chain(found[0]); strings.Join(got, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("it is %q, want %q", got, want)
		}
		return nil
	})
}

func chain(e values.Entry) []string {
	var out []string
	for _, s := range e.Chain {
		line := strings.TrimSpace(fmt.Sprint(s.Value, " ", s.From(), " ", s.Place()))
		if s.Run > 0 && s.At != nil {
			line += " in a run"
		}
		out = append(out, line)
	}
	return out
}
