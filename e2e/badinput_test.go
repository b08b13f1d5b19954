package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
)

// Whatever is wrong with one module is said with file and place in its status, and is
// of no concern to the others.
func TestBrokenModules(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(
		mirror("healthy", on), mirror("syntax", "module(enabled = True\n"), mirror("unknown", on), mirror("unloaded", "modul(enabled = True)\n"),
		mirror("template", on), mirror("listed", on), mirror("chartless", on), mirror("cyclic", on), mirror("schema", on), probe(),
		map[string]string{
			"unknown/hooks/a.star":              "\ndef run(ctx):\n    valeus.set(\"text\", \"x\")\n\nhook(run, on = [startup()])\n",
			"template/templates/cm.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.nobody.knows }}\n",
			"listed/values.yaml":                "- a\n- list\n",
			"chartless/Chart.yaml":              "name: [\n",
			"cyclic/hooks/a.star":               "load(\"./b.star\", \"b\")\na = 1\n",
			"cyclic/hooks/b.star":               "load(\"./a.star\", \"a\")\nb = 1\n",
			"schema/openapi/config-values.yaml": "type: object\nproperties:\n  text: {type: strnig}\n",
		}))
	f.start()
	f.waitRevision(f.ns, "healthy", 1)
	f.waitState("healthy", status.ModuleReady)
	for _, want := range []struct {
		module string
		state  status.ModuleState
		says   []string
	}{
		{"syntax", status.ModuleBroken, []string{"syntax/module.star:2:1"}},
		{"unloaded", status.ModuleBroken, []string{"unloaded/module.star:1:1", "modul", "did you mean module?"}},
		{"unknown", status.ModuleBroken, []string{"unknown/hooks/a.star:3:5", "valeus", "did you mean values?"}},
		{"template", status.ModuleFailed, []string{"template/templates/cm.yaml:4", "nobody"}},
		{"listed", status.ModuleBroken, []string{"listed/values.yaml", "map"}},
		{"chartless", status.ModuleBroken, []string{"chartless/Chart.yaml"}},
		{"cyclic", status.ModuleBroken, []string{"cyclic/hooks/a.star", "cyclic/hooks/b.star", "load each other"}},
		{"schema", status.ModuleBroken, []string{"schema/openapi/config-values.yaml: text: type must be one of"}},
	} {
		f.waitState(want.module, want.state, want.says...)
		noRelease(t, f.ns, want.module)
	}
	f.waitReady()
	f.probe()
}

// A module that breaks between two starts keeps its release.
func TestModuleThatBreaksStaysInstalled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), mirror("shop", on), probe()))
	f.start()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
	f.restart(map[string]string{"web/module.star": "module(enabled = ", "shop/values.yaml": "7\n"})
	f.waitReady()
	f.waitState("web", status.ModuleBroken, "web/module.star:", "its release stays as it is")
	f.waitState("shop", status.ModuleBroken, "shop/values.yaml", "its release stays as it is")
	f.probe()
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
	f.restart(mirror("web", on))
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)
}

// A reason that makes a start useless is one line, with an exit code that is not 0, and
// nothing is written.
func TestStartThatCannotGoOn(t *testing.T) {
	t.Parallel()
	ns := shared.Namespace(t)
	base := (&fixture{t: t, ns: ns}).beside("starling", mirror("web", on))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	garbage := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(garbage, []byte("}{"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := mirrorTree(t)
	for _, test := range []struct {
		name   string
		change func(*fixture)
		args   []string
		says   []string
	}{
		{"no kubeconfig", func(f *fixture) { f.kube = "/nowhere/kubeconfig" }, nil, []string{"/nowhere/kubeconfig"}},
		{"a kubeconfig that is none", func(f *fixture) { f.kube = garbage }, nil, []string{garbage}},
		{"no such context", nil, []string{"--context", "mars"}, []string{"mars"}},
		{"port in use", nil, []string{"--listen", taken.Addr().String()}, []string{taken.Addr().String(), "in use"}},
		{"no modules folder", func(f *fixture) { f.modules = "/nowhere/modules" }, nil, []string{"/nowhere/modules"}},
		{"modules is a file", func(f *fixture) { f.modules = filepath.Join(elsewhere, "web", "Chart.yaml") }, nil, []string{"web/Chart.yaml"}},
		{"pause of an unknown module", nil, []string{"--pause=wbe"}, []string{"wbe", "web"}},
		{"no right to have the Lease", func(f *fixture) { f.ns = "nowhere-" + ns }, nil, []string{"nowhere-" + ns, "leases", "verbs: [\"get\"]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := *base
			f.t = t
			if test.change != nil {
				test.change(&f)
			}
			f.start(test.args...)
			f.fails(test.says...)
		})
	}
	noRelease(t, ns, "web")
}

// A tree's values.yaml that is no map is everybody's problem, a section of it that
// module's.
func TestTreeValuesThatAreNoMap(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), map[string]string{"values.yaml": "- web\n"}))
	f.start()
	f.fails("values.yaml", "map")

	f.write(map[string]string{"values.yaml": "web: 7\nshop:\n  text: from the tree\n"})
	f.write(mirror("shop", on))
	f.start()
	f.waitData("shop", map[string]string{"text": "from the tree"})
	f.waitReady()
	m, err := f.module("web")
	if err != nil {
		t.Fatal(err)
	}
	said := m.Reason + f.process.Output() + strings.Join(m.Problems, " ")
	if err := holds(said, []string{"values.yaml", "web"}); err != nil {
		t.Error(err)
	}
}

// mirrorTree is a module tree on its own.
func mirrorTree(t *testing.T) string {
	f := &fixture{t: t, modules: t.TempDir()}
	f.write(mirror("web", on))
	return f.modules
}
