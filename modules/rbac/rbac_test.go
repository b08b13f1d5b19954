package rbac

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/modules/tree"
)

var update = flag.Bool("update", false, "write the golden files")

func print(t *testing.T, o Options) string {
	t.Helper()
	if o.Namespace == "" {
		o.Namespace, o.Name = "starling-system", "starling"
	}
	r, err := Compute(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (%v); look at it after: go test ./modules/rbac -update\n%s", file, err, got)
	}
}

// Rights that our examples need; their tests in e2e/ show that they are enough.
func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(dirs) == 0 {
		t.Fatal(err)
	}
	for _, readme := range dirs {
		dir := filepath.Dir(readme)
		read, err := tree.ReadDir(dir, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(read.Modules) == 0 {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			golden(t, filepath.Join("testdata", filepath.Base(dir)+".yaml"), print(t, Options{Tree: read}))
		})
	}
}

func readTree(t *testing.T, file string) *tree.Tree {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	read, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// All that a module may need a right for, at once.
func TestAllThereIs(t *testing.T) {
	read := readTree(t, "testdata/all.txtar")
	golden(t, "testdata/all.golden", print(t, Options{Tree: read, MakeNamespaces: true}))
	golden(t, "testdata/all_exist.golden", print(t, Options{Tree: read, Modules: []string{"web"}, Namespace: "infra", Name: "addons"}))
}

// A module that the user switches on is rendered, too.
func TestRenderedWithTheConfig(t *testing.T) {
	read := readTree(t, "testdata/all.txtar")
	with := print(t, Options{Tree: read, Config: map[string]string{"web": "ingress: true"}})
	if !strings.Contains(with, "resources: [ingresses]") || strings.Contains(with, "networking.k8s.io/v1 Ingress") {
		t.Errorf("no right on ingresses:\n%s", with)
	}
	_, err := Compute(t.Context(), Options{Tree: read, Namespace: "a", Name: "a", Config: map[string]string{"web": "- a"}})
	if err == nil || !strings.HasPrefix(err.Error(), "the config: ") {
		t.Errorf("got %v", err)
	}
}

// Values that hooks set are rendered, too, as far as they find it in an empty cluster.
func TestRenderedWithWhatHooksFind(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star":         {Data: []byte("module()\n")},
		"a/hooks/a.star":        {Data: []byte("def f(ctx):\n    values.set(\"kind\", \"Service\")\n\nhook(f, on = [startup()])\n")},
		"a/templates/a.yaml":    {Data: []byte("apiVersion: v1\nkind: {{ required \"a kind\" .Values.kind }}\nmetadata: {name: a}\n")},
		"a/openapi/values.yaml": {Data: []byte("type: object\nproperties: {kind: {type: string}}\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := print(t, Options{Tree: read}); !strings.Contains(text, "resources: [services]") || strings.Contains(text, "Not known") {
		t.Errorf("got\n%s", text)
	}
}

// Where changes of others are ignored, nothing is watched.
func TestRightsWithoutWatches(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star":      {Data: []byte("module(drift = \"ignore\")\n")},
		"a/templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := print(t, Options{Tree: read}); !strings.Contains(text, "resources: [services]\n  verbs: [get, create, patch, delete]") {
		t.Errorf("got\n%s", text)
	}
}

// The objects of a list count, as Helm takes them out.
func TestListsOfObjects(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/templates/a.yaml": {Data: []byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: a}}\n")},
		"a/templates/b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := print(t, Options{Tree: read})
	for _, want := range []string{"resources: [services]", "resources: [configmaps]\n  verbs: [get, list, watch, create, patch, delete]"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "lists]") || strings.Contains(text, "Not known") {
		t.Errorf("got\n%s", text)
	}
}

// Names that a chart makes up cannot add a line: names stand in comments, and in quotes.
func TestNamesOfChartsAddNoRights(t *testing.T) {
	for _, end := range []string{"\\n", "\\r", "\\u0085", "\\u2028", "\\u202e", "\\u2066"} {
		read, err := tree.Read(fstest.MapFS{"a/templates/a.yaml": {Data: []byte(
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"x" + end + "- verbs: [escalate]\"}\n" +
				"rules:\n- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"get" + end + "- verbs: [impersonate]\"]}\n")}}, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := print(t, Options{Tree: read})
		if !strings.Contains(text, "holds rights on everything") {
			t.Errorf("nobody is told:\n%s", text)
		}
		if strings.ContainsAny(text, "\u202e\u2066") {
			t.Errorf("%q turns what is read around", end)
		}
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028", r) }) {
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "- verbs:") {
				t.Errorf("%q adds %q", end, line)
			}
		}
	}
}

// The CustomResourceDefinitions of packed subcharts are applied, too; of subcharts that are
// off they are named where they can be read, for values may switch them on.
func TestDefinitionsOfPackedSubcharts(t *testing.T) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	tape := tar.NewWriter(zip)
	for name, text := range map[string]string{
		"sub/Chart.yaml":  "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
		"sub/crds/t.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true}]}\n",
	} {
		if err := tape.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tape.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":           {Data: []byte(`module(enabled = True, grants = [grant("example.com/v1", "Thing", verbs = ["get"])])`)},
		"web/Chart.yaml":            {Data: []byte("apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies: [{name: sub, version: 0.1.0, condition: sub.enabled}]\n")},
		"web/charts/sub-0.1.0.tgz":  {Data: packed.Bytes()},
		"values.yaml":               {Data: []byte("web: {sub: {enabled: true}}\ntwo: {off: {enabled: false}}\n")},
		"two/module.star":           {Data: []byte("module(enabled = True)")},
		"two/Chart.yaml":            {Data: []byte("apiVersion: v2\nname: two\nversion: 0.1.0\ndependencies: [{name: off, version: 0.1.0, condition: off.enabled}]\n")},
		"two/charts/off/Chart.yaml": {Data: []byte("apiVersion: v2\nname: off\nversion: 0.1.0\n")},
		"two/charts/off/crds/o.yml": {Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Other, plural: others}, versions: [{name: v1, served: true}]}\n")},
		"two/templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := print(t, Options{Tree: read})
	for _, want := range []string{"resourceNames: [modules.starling.dev, others.example.com, things.example.com]\n  verbs: [get, create, patch]", "crds/ of two; crds/ of web"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "guessed") {
		t.Errorf("the kind is known:\n%s", text)
	}
}

func TestAModuleThatDoesNotLoadIsAnError(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star":  {Data: []byte("module(enabeld = True)\n")},
		"b/hooks/b.star": {Data: []byte("hook(1)\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compute(t.Context(), Options{Tree: read, Namespace: "a", Name: "a"})
	if err == nil || !strings.Contains(err.Error(), "a/module.star:1") || !strings.Contains(err.Error(), "b/hooks/b.star:1") {
		t.Errorf("got %v", err)
	}
	_, err = Compute(t.Context(), Options{Tree: read, Modules: []string{"c"}, Namespace: "a", Name: "a"})
	if err == nil || err.Error() != "there is no module c; the tree has a, b" {
		t.Errorf("got %v", err)
	}
}

func TestGuessedPlurals(t *testing.T) {
	k := newKinds()
	for kind, want := range map[string]string{"Policy": "policies", "Gateway": "gateways", "Class": "classes", "Mesh": "meshes", "Proxy": "proxies", "Thing": "things"} {
		if got := k.of("example.com/v1", kind); got.plural != want || !got.guessed || got.group != "example.com" {
			t.Errorf("%s: got %+v, want %s", kind, got, want)
		}
	}
	if got := k.of("networking.k8s.io/v1", "NetworkPolicy"); got.plural != "networkpolicies" || got.guessed || !got.namespaced {
		t.Errorf("got %+v", got)
	}
}

// A rule that another rule of the role, or of the ClusterRole, covers is left out.
func TestRulesAreReduced(t *testing.T) {
	var cluster, s rules
	cluster.add(Rule{Resource: "pods", Verbs: []string{"get"}})
	s.add(Rule{Resource: "pods", Verbs: []string{"get", "list"}, Why: []string{"a"}})
	s.add(Rule{Resource: "pods", Names: []string{"x"}, Verbs: []string{"get", "list", "delete"}})
	s.add(Rule{Resource: "pods", Names: []string{"y"}, Verbs: []string{"delete"}})
	s.add(Rule{Resource: "pods", Verbs: []string{"list"}, Why: []string{"b", "a"}})
	s.add(Rule{Group: "apps", Resource: "*", Verbs: []string{"*", "get"}})
	s.add(Rule{Group: "apps", Resource: "deployments", Names: []string{"x"}, Verbs: []string{"get"}})
	s.add(Rule{URL: "/metrics", Verbs: []string{"get"}})
	var got []string
	for _, r := range s.reduced(&cluster) {
		got = append(got, strings.Join([]string{r.URL + r.Group, r.Resource, strings.Join(r.Names, ","), strings.Join(r.Verbs, ","), strings.Join(r.Why, ",")}, " "))
	}
	want := []string{" pods  list a,b", " pods x,y delete ", "apps *  * ", "/metrics   get "}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Members of sets are read before they are written: with lists, where no names are given.
func TestSetsReadTheirMembers(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star": {Data: []byte(`module(grants = [
    grant("v1", "ConfigMap", verbs = ["write"]),
    grant("v1", "Service", verbs = ["apply", "delete"], names = ["x"]),
    grant("v1", "Pod", verbs = ["apply"]),
])
`)},
		"a/hooks/a.star": {Data: []byte("def f(ctx):\n    k8s.apply_set(\"all\", [])\n\nhook(f, on = [startup()])\n")},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := print(t, Options{Tree: read})
	for _, want := range []string{
		"resources: [configmaps]\n  verbs: [get, list, create, patch, delete]",
		"resources: [services]\n  resourceNames: [x]\n  verbs: [get, create, patch, delete]",
		"resources: [pods]\n  verbs: [create, patch]",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// An object whose end is waited for is looked at.
func TestDeletesThatWaitReadTheirObject(t *testing.T) {
	for wait, want := range map[string]string{"": "verbs: [delete]", ", wait = \"1m\"": "verbs: [get, delete]"} {
		read, err := tree.Read(fstest.MapFS{
			"a/module.star":  {Data: []byte("module(grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"delete\"])])\n")},
			"a/hooks/a.star": {Data: []byte("def f(ctx):\n    k8s.delete(\"v1\", \"ConfigMap\", \"x\"" + wait + ")\n\nhook(f, on = [startup()])\n")},
		}, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if text := print(t, Options{Tree: read}); !strings.Contains(text, "resources: [configmaps]\n  "+want) {
			t.Errorf("%q: no %q in\n%s", wait, want, text)
		}
	}
}

// Questions to containers are separate rights, which "*" does not hold. The Pod is looked at first.
func TestQuestionsToContainers(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star": {Data: []byte(`module(grants = [
    grant("v1", "Pod", verbs = ["exec"], names = ["db-0"]),
    grant("v1", "Pod", verbs = ["logs"], namespaces = ["web"]),
    grant("v1", "Pod", verbs = ["*"], namespaces = ["all"]),
])
`)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := print(t, Options{Tree: read})
	for _, want := range []string{
		"resources: [pods]\n  resourceNames: [db-0]\n  verbs: [get]",
		"resources: [pods/exec]\n  resourceNames: [db-0]\n  verbs: [get, create]",
		"resources: [pods]\n  verbs: [get]",
		"resources: [pods/log]\n  verbs: [get]",
		"resources: [pods]\n  verbs: [\"*\"]",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "serviceaccounts/token") {
		t.Errorf("a right that nobody asks for:\n%s", text)
	}
	if n := strings.Count(text, "pods/"); n != 2 {
		t.Errorf("%d rights on subresources of Pods, want 2:\n%s", n, text)
	}
}

// A token is a separate right of a ServiceAccount by its name, which "*" does not hold; a question is a create.
func TestQuestionsToTheAPIServer(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"a/module.star": {Data: []byte(`module(grants = [
    grant("v1", "ServiceAccount", verbs = ["token"], names = ["ci"]),
    grant("v1", "ServiceAccount", verbs = ["token"], labels = "app=ci", namespaces = ["marked"]),
    grant("v1", "ServiceAccount", verbs = ["*"], namespaces = ["all"]),
    grant("authorization.k8s.io/v1", "LocalSubjectAccessReview", verbs = ["create"], namespaces = ["web"]),
])
`)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := print(t, Options{Tree: read})
	for _, want := range []string{
		"resources: [serviceaccounts/token]\n  resourceNames: [ci]\n  verbs: [create]",
		"resources: [serviceaccounts]\n  verbs: [get]",
		"resources: [serviceaccounts/token]\n  verbs: [create]",
		"resources: [serviceaccounts]\n  verbs: [\"*\"]",
		"apiGroups: [authorization.k8s.io]\n  resources: [localsubjectaccessreviews]\n  verbs: [create]",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "serviceaccounts/token"); n != 2 {
		t.Errorf("%d rights for tokens, want 2:\n%s", n, text)
	}
}
