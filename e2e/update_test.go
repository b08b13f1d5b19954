package e2e

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A process that takes over, be it of another version (`make versions`), finds all as it should be: it makes no
// revision, writes no child and no member of a set, and keeps what is kept.
func TestATakeOverWritesNothing(t *testing.T) {
	t.Parallel()
	chart := func(name, moduleStar, data string) map[string]string {
		m := mirror(name, moduleStar)
		m[name+"/templates/cm.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: {{ .Release.Namespace }}}\ndata:\n" + data
		return m
	}
	const looks = `module(enabled = True, lookup = [grant("v1", "ConfigMap", namespaces = ["$NS"], names = ["keeps", "chance"])])` + "\n"
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	f.write(trees(
		mirror("plain", on), probe(),
		chart("whole", on, "  values: {{ .Values | toJson | quote }}\n"),
		chart("asks", on, "  has: {{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" | quote }}\n  version: {{ .Capabilities.KubeVersion }}\n"),
		chart("all", on, "  has: {{ range .Capabilities.APIVersions }}{{ if eq . \"apps/v1\" }}there{{ end }}{{ end }}\n"),
		chart("keeps", looks, "{{ $old := lookup \"v1\" \"ConfigMap\" .Release.Namespace \"keeps\" }}\n  password: {{ if $old }}{{ $old.data.password }}{{ else }}a{{ randAlphaNum 9 }}{{ end }}\n"),
		map[string]string{
			"hooks/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["get", "list", "create", "patch", "delete"], namespaces = ["$NS"])])`,
			"hooks/hooks/parent.star": `
def desired(ctx, o):
    return [part({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child-" + o.metadata.name}, "data": {"of": base64.encode(o.metadata.name)}})]

controller("parent", k8s.watch("v1", "ConfigMap", namespaces = ["$NS"], labels = {"e2e": "$NS"}), desired, owns = [owns("v1", "Secret")])
`,
			"hooks/hooks/set.star": `
def members(ctx):
    k8s.apply_set("all", [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "member-%d" % i, "namespace": "$NS"}}
        for i in range(3)
    ])
    values.set("internal.kept", "yes")

hook(members, on = [startup()])
`,
		},
	))
	if os.Getenv("STARLING_OLDER") == "" { // versions before decision 100 make a revision of it at each start
		f.write(chart("chance", looks, "{{ $old := lookup \"v1\" \"ConfigMap\" .Release.Namespace \"chance\" }}\n  password: a{{ randAlphaNum 9 }}\n"))
	}
	f.grantPrinted()
	for _, name := range []string{"a", "b", "c"} {
		f.touch(name, "parent")
	}
	f.alone("the one that takes over must be the other version")
	f.start()
	f.waitReady()
	f.eventually("the last child is there", func() error {
		_, err := shared.Client.CoreV1().Secrets(f.ns).Get(t.Context(), "child-c", metav1.GetOptions{})
		return err
	})
	f.probe()
	f.eventually("all has settled", f.quiet)
	before := restingPicture(t, f.ns)
	const noted = "secrets/starling-releases-1" // what is noted of a release may have another form
	delete(before, noted)
	for range 3 {
		f.restart()
		f.waitReady()
		f.probe()
		f.eventually("all has settled", f.quiet)
		after := restingPicture(t, f.ns)
		delete(after, noted)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("namespace %s has changed (-before +after):\n%s", f.ns, diff)
		}
		before = after
	}
}
