package generation

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
)

// A watch of Secrets needs a grant that covers all that it shows, and the error shows the
// line that would do.
func TestAWatchOfSecretsNeedsAGrant(t *testing.T) {
	for name, c := range map[string]struct{ module, watch, want string }{
		"none":                {"", "", `add to the grants of module.star: grant("v1", "Secret", verbs = ["get", "list", "watch"], namespaces = ["*"])`},
		"all":                 {`grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"])`, "", ""},
		"one verb of two":     {`grant("v1", "Secret", verbs = ["get", "list"], namespaces = ["*"])`, "", "may not watch Secrets in all namespaces"},
		"two grants":          {`grant("v1", "Secret", verbs = ["list"], namespaces = ["*"]), grant("v1", "Secret", verbs = ["watch"], namespaces = ["*"])`, "", ""},
		"its own namespace":   {`grant("v1", "Secret", verbs = ["list", "watch"])`, `, namespaces = ["web"]`, ""},
		"another namespace":   {`grant("v1", "Secret", verbs = ["list", "watch"])`, `, namespaces = ["web", "db"]`, `namespaces = ["web", "db"])`},
		"its names":           {`grant("v1", "Secret", verbs = ["list", "watch"], names = ["a", "b"])`, `, namespaces = ["web"], object_names = ["a"]`, ""},
		"other names":         {`grant("v1", "Secret", verbs = ["list", "watch"], names = ["a"])`, `, namespaces = ["web"], object_names = ["a", "b"]`, `verbs = ["get", "list", "watch"], names = ["a", "b"])`},
		"its labels":          {`grant("v1", "Secret", verbs = ["*"], labels = "app=web", namespaces = ["*"])`, `, labels = {"app": "web"}`, ""},
		"fewer labels":        {`grant("v1", "Secret", verbs = ["*"], labels = "app=web", namespaces = ["*"])`, "", "in all namespaces"},
		"its own objects":     {`grant("v1", "Secret", verbs = ["*"], owned = True, namespaces = ["*"])`, "", "in all namespaces"},
		"another kind's line": {`grant("v1", "ConfigMap", verbs = ["*"], namespaces = ["*"])`, "", "in all namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := tree.Read(fstest.MapFS{
				"web/module.star":  {Data: []byte("module(namespace = \"web\", grants = [" + c.module + "])\n")},
				"web/hooks/a.star": {Data: []byte("def f(ctx):\n    pass\n\nhook(f, on = [k8s.watch(\"v1\", \"Secret\"" + c.watch + ")])\n")},
			}, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			g := Load(t.Context(), Options{Tree: read, Log: func(string) builtins.Logger { return silentLog{} }})
			got := ""
			if err := g.Modules["web"].Err; err != nil {
				got = err.Error()
			}
			if c.want == "" && got != "" || !strings.Contains(got, c.want) || got != "" && !strings.HasPrefix(got, "web/hooks/a.star:4:") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// So does what a controller reads; its children are seen without their data.
func TestAControllerThatReadsSecretsNeedsAGrant(t *testing.T) {
	for grants, want := range map[string]string{
		"": "web/hooks/a.star:1: hook c may not watch Secrets in all namespaces; add to the grants of module.star: grant",
		`grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"])`: "",
	} {
		read, err := tree.Read(fstest.MapFS{
			"web/module.star":  {Data: []byte("module(grants = [" + grants + "])\n")},
			"web/hooks/a.star": {Data: []byte(`controller("c", k8s.watch("v1", "Node"), lambda ctx, o: [], owns = [owns("v1", "Secret")], reads = {"s": k8s.watch("v1", "Secret")})` + "\n")},
		}, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := Load(t.Context(), Options{Tree: read, Log: func(string) builtins.Logger { return silentLog{} }})
		got := ""
		if err := g.Modules["web"].Err; err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("with %q: got %q, want %q", grants, got, want)
		}
	}
}

type silentLog struct{}

func (silentLog) Log(builtins.Level, string, []builtins.Field) {}
