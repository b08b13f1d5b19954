package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/syntax"
)

func TestConfigText(t *testing.T) {
	for _, tt := range []struct{ name, source, want, err string }{
		{"quoted", "cat <<'EOF'\nconfigVersion: v1\nEOF\n", "configVersion: v1", ""},
		{"unquoted", "cat <<EOF\nconfigVersion: v1\njqFilter: \"\\$x\"\nEOF\n", "configVersion: v1\njqFilter: \"$x\"", ""},
		{"tabs", "cat <<-EOF\n\tconfigVersion: v1\n\tEOF\n", "configVersion: v1", ""},
		{"backslash", "cat <<\\EOF\nconfigVersion: v1 # $x\nEOF\n", "configVersion: v1 # $x", ""},
		{"others first", "cat <<A\nhello\nA\ncat <<B\nconfigVersion: v1\nB\n", "configVersion: v1", ""},
		{"echo", "echo '\nconfigVersion: v1'\n", "\nconfigVersion: v1", ""},
		{"json", `echo '{"onStartup": 1, "configVersion": "v1"}'`, `{"onStartup": 1, "configVersion": "v1"}`, ""},
		{"double quotes", `echo "{\"configVersion\": \"v1\", \"onStartup\": 1}"`, `{"configVersion": "v1", "onStartup": 1}`, ""},
		{"double quotes, computed", `echo "{\"configVersion\": \"v1\", \"onStartup\": $N}"`, "", "it holds $N"},
		{"python", "print(r'''configVersion: v1\n'''\n)", "configVersion: v1\n", ""},
		{"variable", "cat <<EOF\nconfigVersion: v1\nkind: ${KIND}\nEOF\n", "", "line 1: its config is computed: it holds ${KIND}"},
		{"module", "cat <<EOF\nconfigVersion: v1\nqueue: /modules/$(module::name::kebab_case)/a\nEOF\n", "configVersion: v1\nqueue: /modules/web/a", ""},
		{"command", "cat <<EOF\nconfigVersion: v1\nkind: `kind`\nEOF\n", "", "it holds `kind`"},
		{"f-string", "print(f\"\"\"configVersion: v1\n\"\"\")", "", "values of an f-string"},
		{"no end", "cat <<EOF\nconfigVersion: v1\n", "", "no text with configVersion"},
		{"windows", "cat <<'EOF'\r\nconfigVersion: v1\r\nEOF\r\n", "configVersion: v1", ""},
		{"large", strings.Repeat("#", maxSource+1), "", "larger than 256 KiB"},
		{"binary", "\x7fELF", "", "a binary"},
	} {
		got, _, err := configText([]byte(tt.source), "web")
		switch {
		case tt.err == "" && (err != nil || got != tt.want):
			t.Errorf("%s: got %q, %v; want %q", tt.name, got, err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.err)
		}
	}
}

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]string{
		"configVersion: v1\nkubernetes: 1":      "the config",
		"configVersion: v2":                     "not of configVersion v1",
		"onStartup: 1":                          "not of configVersion v1",
		"a: b: c":                               "the config",
		"configVersion: v1\nonStartup: early\n": "the config",
	} {
		if _, _, err := parseConfig(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	loose, _, err := parseConfig("configVersion: v1\nkubernetes: [{includeSnapshotsFrom: a, nameSelector: [b], namespace: {nameSelector: {matchNames: [c]}}}]\n")
	if err != nil || loose.Kubernetes[0].Snapshots[0] != "a" || loose.Kubernetes[0].NameSelector.MatchNames[0] != "b" || loose.Kubernetes[0].Namespace.NameSelector.MatchNames[0] != "c" {
		t.Errorf("got %+v, %v", loose, err)
	}
	c, unknown, err := parseConfig("configVersion: v1\nlogLevel: debug\nonStartup: 3\nkubernetes:\n- kind: Pod\n  delay: 1\n  labelSelector: {matchLabels: {delay: x}}\n  executeHookOnSynchronization: \"false\"\n")
	if err != nil || !slices.Equal(unknown, []string{"delay", "logLevel"}) && !slices.Equal(unknown, []string{"logLevel", "delay"}) || c.Kubernetes[0].LabelSelector.MatchLabels["delay"] != "x" || c.OnStartup == nil || *c.OnStartup != 3 || !c.Kubernetes[0].OnSynchronization.is(false) {
		t.Errorf("got %+v, %q, %v", c, unknown, err)
	}
}

func TestResolveKind(t *testing.T) {
	custom := customKinds([]oldFile{
		{path: "crds/a.yaml", data: []byte("kind: CustomResourceDefinition\nspec:\n  group: example.com\n  names: {kind: CronTab, plural: crontabs, shortNames: [ct]}\n  versions: [{name: v1}, {name: v2, storage: true}]\n")},
		{path: "templates/b.yaml", data: []byte("kind: CustomResourceDefinition\n{{ if }}\n")},
	})
	for _, tt := range []struct {
		version, kind         string
		wantVersion, wantKind string
		how                   certainty
	}{
		{"", "Pod", "v1", "Pod", known},
		{"", "pods", "v1", "Pod", known},
		{"", "deploy", "apps/v1", "Deployment", known},
		{"apps/v1", "deployments", "apps/v1", "Deployment", known},
		{"networking.k8s.io/v1beta1", "ingress", "networking.k8s.io/v1beta1", "Ingress", known},
		{"example.com/v1", "Service", "example.com/v1", "Service", spelled},
		{"example.com/v1", "ct", "example.com/v1", "CronTab", known},
		{"", "crontab", "example.com/v2", "CronTab", known},
		{"other.com/v1", "Crontab", "other.com/v1", "Crontab", spelled},
		{"example.com/v1", "webs", "example.com/v1", "webs", guessed},
		{"", "Web", "example.com/v1", "Web", guessed},
	} {
		version, kind, how := resolveKind(tt.version, tt.kind, custom)
		if version != tt.wantVersion || kind != tt.wantKind || how != tt.how {
			t.Errorf("%s %s: got %s %s %v", tt.version, tt.kind, version, kind, how)
		}
	}
}

func TestFunctionName(t *testing.T) {
	for file, want := range map[string]string{
		"10-count-pods": "count_pods", "Main": "main", "for": "for_hook", "values": "values_hook", "001": "run_hook", "a.b c": "a_b_c", "ключ": "run_hook",
	} {
		if got := functionName(file); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

func TestEnabledFunction(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{"#!/bin/bash\nset -e\necho true > $MODULE_ENABLED_RESULT\n", "return True"},
		{"#!/bin/bash\nsource /shell_lib.sh\nfunction __main__() {\n  echo \"false\" > \"${MODULE_ENABLED_RESULT}\"\n}\nenabled::run $@\n", "return disabled("},
		{"#!/bin/bash\nkubectl get x && exit 1\necho true > $MODULE_ENABLED_RESULT\n", "return waiting("},
		{"#!/bin/bash\nif values::array_has global.enabledModules \"gone\" ; then\n  echo \"true\" > $MODULE_ENABLED_RESULT\nelse\n  echo \"false\" > $MODULE_ENABLED_RESULT\nfi\n", "return waiting("},
		{"", "return waiting("},
	} {
		got, _, _ := enabledFunction(&notes{path: "web/enabled"}, tt.source, nil)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q: got %s", tt.source, got)
		}
		if _, err := (&syntax.FileOptions{}).Parse("module.star", got, 0); err != nil {
			t.Error(err)
		}
	}
}

func TestRequirements(t *testing.T) {
	ask := func(condition string) string {
		return "#!/bin/bash\nsource /shell_lib.sh\nfunction __main__() {\n  if " + condition + " ; then\n    echo \"true\" > $MODULE_ENABLED_RESULT\n  else\n    echo \"false\" > \"$MODULE_ENABLED_RESULT\"\n  fi\n}\nenabled::run $@\n"
	}
	for condition, want := range map[string][]string{
		`values::array_has global.enabledModules "cert-manager-crd"`:                                    {"cert-manager-crd"},
		`values::array_has "global.enabledModules" web && values::array_has global.enabledModules "db"`: {"web", "db"},
		`! values::array_has global.enabledModules "web"`:                                               {"!web"},
		`values::array_has global.enabledModules "web" || values::array_has global.enabledModules db`:   {"web|db"},
		`! values::array_has global.enabledModules a && values::array_has global.enabledModules db`:     {"!a", "db"},
		`! values::array_has global.enabledModules a || values::array_has global.enabledModules db`:     nil,
		`values::array_has global.enabledModules "web" || values::has a`:                                nil,
		`values::array_has global.enabledModules "web" && kubectl get x`:                                nil,
		"values::array_has global.enabledModules \"web\" ; then\n exit 1\n fi\n if true":                nil,
	} {
		if got := requirements(ask(condition)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", condition, got, want)
		}
	}
	function, requires, _ := enabledFunction(&notes{}, ask(`values::array_has global.enabledModules "web"`), map[string]string{"web": "010-web"})
	if function != "" || !slices.Equal(requires, []string{"web"}) {
		t.Errorf("got %q, %q", function, requires)
	}
}

func TestModuleValues(t *testing.T) {
	n := &notes{path: "values.yaml"}
	v := moduleValues(n, []byte("# of the file\ncertManager:\n  # how many\n  replicas: 2\ncertManagerEnabled: true\nmore: 1\n"), "certManager")
	if want := "# how many\nreplicas: 2\n"; string(v.section) != want || v.enabled == nil || !*v.enabled || v.besides["more"] != int64(1) {
		t.Errorf("got %+v, want %q", v, want)
	}
	if len(n.all) != 3 || n.all[2].Fate != Changed {
		t.Errorf("got %v", n.all)
	}
	for _, text := range []string{"[1]", "web: 1", "webEnabled: [1]", "", "a: 1\na: 2", "global: {}"} {
		if v := moduleValues(n, []byte(text), "web"); v.section != nil || v.enabled != nil || v.besides != nil {
			t.Errorf("%q: got %+v", text, v)
		}
	}
}

// Sections that Starling refuses are taken out of the values of the tree; all else stays.
func TestTreeValues(t *testing.T) {
	keys := map[string]bool{"web": true}
	for text, want := range map[string]string{
		"web: {a: 1} # as it is\n":                           "web: {a: 1} # as it is\n",
		"web: 1\nwebEnabled: on please\nother: [1]\n":        "other: [1]\n",
		"web: [1] # two\nwebEnabled: true\n":                 "web:\n  items: [1] # two\nwebEnabled: true\n",
		"global: 3\nweb:\nwebEnabled: true\n":                "web:\nwebEnabled: true\n",
		"web: {a: &x [1]}\nglobal: [1]\nwebEnabled: false\n": "web: {a: &x [1]}\nwebEnabled: false\n",
		"a: [": "",
	} {
		if got := treeValues(&notes{path: "values.yaml"}, []byte(text), keys); string(got) != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	got := string(report([]Note{{"b", Done, "as it is"}, {"a", Left, "no"}, {"a", Left, "no"}}))
	want := "# Migration\n\nWritten by `starling new`. Paths are those of the old tree.\n" +
		"\n## Not brought over (1)\n\nThese need work by hand.\n\n- `a`: no\n" +
		"\n## Brought over (1)\n\nThese mean the same as before.\n\n- `b`: as it is\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each hook that is translated is Starlark, whatever the old one holds.
func FuzzHook(f *testing.F) {
	for _, source := range []string{
		"cat <<EOF\nconfigVersion: v1\nonStartup: 1\nEOF\n",
		"echo '{\"configVersion\": \"v1\", \"schedule\": [{\"crontab\": \"@every 5m\", \"name\": \"a\\nb\"}]}'",
		"cat <<'X'\nconfigVersion: v1\nkubernetes: [{kind: Pod, jqFilter: '{a: .b}', name: \"\\\"\"}]\nX\n",
		"cat <<'X'\nconfigVersion: v1\nkubernetesValidating: [{rules: [{a: [1, null, {b: c}]}], timeoutSeconds: 3}]\nX\n",
		"cat <<'X'\nconfigVersion: v1\nkubernetesCustomResourceConversion: [{crdName: \"a\\\"b\", conversions: [{fromVersion: a, toVersion: 'b)'}]}]\nX\n",
	} {
		f.Add([]byte(source), true)
	}
	f.Fuzz(func(t *testing.T, source []byte, lambdas bool) {
		h, ok := translateHook(&notes{path: "web/hooks/a.sh"}, source, place{global: true, chart: true, queues: map[string]bool{}}, Options{Lambdas: lambdas})
		if !ok {
			return
		}
		if _, err := (&syntax.FileOptions{}).Parse("a.star", h.text, 0); err != nil {
			t.Errorf("%v\n%s", err, h.text)
		}
	})
}
