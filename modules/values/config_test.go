package values

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

var known = []KnownModule{{Name: "ingress-nginx", Key: "ingressNginx"}, {Name: "web", Key: "web"}}

func texts2(ps []Problem) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Error())
	}
	return out
}

func TestParseConfig(t *testing.T) {
	tests := []struct {
		name     string
		data     map[string]string
		want     Config
		problems []string
	}{
		{"nothing", nil, Config{}, nil},
		{
			"policies of releases",
			map[string]string{"webDrift": "report\n", "webPaused": "true", "ingressNginxDrift": "heal", "ingressNginxPaused": "false", "webPause": "true"},
			Config{Policies: map[string]Policy{"web": {Drift: "report", Paused: true}}},
			[]string{
				`config webPause: no module has this key, did you mean "webPaused"?`,
				`config ingressNginxDrift: must be "repair" or "report" or "ignore"`,
			},
		},
		{
			"the pause of addon-operator",
			map[string]string{"webMaintenance": "NoResourceReconciliation\n", "webPaused": "false", "ingressNginxMaintenance": "on", "ingressNginxDrift": "report", "webMaintenanc": ""},
			Config{Policies: map[string]Policy{"web": {Paused: true}, "ingress-nginx": {Drift: "report"}}},
			[]string{
				`config webMaintenanc: no module has this key, did you mean "webMaintenance"?`,
				`config ingressNginxMaintenance: must be "NoResourceReconciliation", which pauses the release, or ""`,
			},
		},
		{"no pause of addon-operator", map[string]string{"webMaintenance": ""}, Config{}, nil},
		{
			"all kinds of keys",
			map[string]string{"global": "domain: x", "ingressNginx": "replicas: 3\nbig: 9007199254740993\nf: 1.5\n", "web": "# nothing\n",
				"webEnabled": "true", "ingressNginxEnabled": " false\n"},
			Config{
				Global:   object{"domain": "x"},
				Sections: map[string]map[string]any{"ingress-nginx": {"replicas": int64(3), "big": int64(9007199254740993), "f": 1.5}, "web": {}},
				Enabled:  map[string]bool{"web": true, "ingress-nginx": false},
			},
			nil,
		},
		{
			"what is broken leaves the rest alone",
			map[string]string{"global": "a: 1\na: 2", "ingressNginx": "- a", "web": "a: 1", "webEnabled": "yes", "ingress-nginx": "a: 1",
				"webEnable": "true", "ingress-nginx-enabled": "true", "zzz": "a"},
			Config{Sections: map[string]map[string]any{"web": {"a": int64(1)}}},
			[]string{
				`config ingress-nginx: no module has this key, did you mean "ingressNginx"?`,
				`config ingress-nginx-enabled: no module has this key, did you mean "ingressNginxEnabled"?`,
				`config webEnable: no module has this key, did you mean "webEnabled"?`,
				`config zzz: no module has this key`,
				`config global: is not valid YAML: line 2: key "a" already set in map`,
				`config ingressNginx: must be a map, not a list; put the list under a key, such as "items:"`,
				`config webEnabled: must be "true" or "false"`,
			},
		},
		{
			"second documents",
			map[string]string{"global": "a: 1\n---\nb: 2", "ingressNginx": "---\na: |\n  ---\n---\n# nothing\n", "web": "\ufeffa: 1\n--- \nb: 2\n"},
			Config{Sections: map[string]map[string]any{"ingress-nginx": {"a": "---\n"}}},
			[]string{
				`config global: holds a second document from line 2 on: write one, without the ---`,
				`config web: holds a second document from line 2 on: write one, without the ---`,
			},
		},
		{
			"hostile",
			map[string]string{"global": strings.Repeat("[", 300) + strings.Repeat("]", 300), "web": strings.Repeat(" ", 1<<20+1), "ingressNginx": "? [a]\n: b"},
			Config{},
			[]string{
				`config global: is nested deeper than 100 levels`,
				`config ingressNginx: is not valid YAML for values: every map key must be text`,
				`config web: is larger than 1024 KiB`,
			},
		},
		{
			"bombs", // one text many times, a few values in many lists, many small maps
			map[string]string{
				"global":       "a: &a " + strings.Repeat("x", 500_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]",
				"ingressNginx": "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]",
				"web":          "a: [" + strings.Repeat("{a},", 200_000) + "]",
				"webEnabled":   "true",
			},
			Config{Enabled: map[string]bool{"web": true}},
			[]string{
				`config global: is too large: with its aliases it makes more than 400000 values or 32 MiB of text`,
				`config ingressNginx: is too large: with its aliases it makes more than 400000 values or 32 MiB of text`,
				`config web: is too large: it holds more than some 100000 values; split it`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ps := ParseConfig(tt.data, known)
			if tt.want.Sections == nil {
				tt.want.Sections = map[string]map[string]any{}
			}
			if tt.want.Enabled == nil {
				tt.want.Enabled = map[string]bool{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.problems, texts2(ps)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// A config may speak about modules that another instance has: that is neither read nor a mistake.
func TestConfigOfAModuleElsewhere(t *testing.T) {
	all := append(slices.Clip(known), KnownModule{Key: "shop", Elsewhere: true})
	got, ps := ParseConfig(map[string]string{"shop": "[", "shopEnabled": "maybe", "shopDrift": "no", "shopPaused": "?", "web": "a: 1"}, all)
	if len(ps) > 0 || len(got.Sections) != 1 || len(got.Enabled)+len(got.Policies) > 0 {
		t.Errorf("%+v, problems %v", got, texts2(ps))
	}
	if got, ps := ParseTree(object{"shop": "x", "shopEnabled": 1, "web": object{}}, "values.yaml", all); len(ps) > 0 || len(got.Sections) != 1 {
		t.Errorf("%+v, problems %v", got, texts2(ps))
	}
}

func TestParseTree(t *testing.T) {
	got, ps := ParseTree(object{"global": object{"a": int64(1)}, "web": nil, "ingressNginx": []any{}, "webEnabled": true,
		"ingressNginxEnabled": "true", "wbe": object{}}, "values.yaml", known)
	want := Config{Global: object{"a": int64(1)}, Sections: map[string]map[string]any{"web": {}}, Enabled: map[string]bool{"web": true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	problems := []string{
		`tree values.yaml wbe (values.yaml): no module has this key, did you mean "web"?`,
		`tree values.yaml ingressNginx (values.yaml): must be a map, not a list; put the list under a key, such as "items:"`,
		`tree values.yaml ingressNginxEnabled (values.yaml): must be true or false`,
	}
	if diff := cmp.Diff(problems, texts2(ps)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if on := got.Switch("web"); on == nil || !*on || got.Switch("ingress-nginx") != nil {
		t.Error("switches are wrong")
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("web", "a: 1\nb: [1, 2.5, {c: null}]")
	f.Add("webEnabled", "true")
	f.Add("global", "a: &a [*a]")
	f.Add("global", "<<: {a: 1}\n1: 2\ntrue: false")
	f.Fuzz(func(t *testing.T, key, text string) {
		config, ps := ParseConfig(map[string]string{key: text, "ingressNginx": "good: true"}, known)
		if key != "ingressNginx" && config.Sections["ingress-nginx"]["good"] != true {
			t.Fatal("one key spoiled another")
		}
		for _, p := range ps {
			if strings.Contains(p.Message, "\n") || strings.Contains(p.Message, "interface {}") {
				t.Fatalf("%q", p.Message)
			}
		}
		Section{Config: config.Global, Hooks: []HookLayer{{"h", ops(set("a.b", 1))}}}.Compose()
	})
}

// The mark that editors put before a text is a part of no key, and of no switch.
func TestParseConfigWithMarks(t *testing.T) {
	known := []KnownModule{{Name: "web", Key: "web"}}
	got, problems := ParseConfig(map[string]string{"web": "\ufeffreplicas: 2\n", "webEnabled": "\ufefftrue", "webDrift": "\ufeffignore"}, known)
	if len(problems) > 0 || got.Sections["web"]["replicas"] != int64(2) || !got.Enabled["web"] || got.Policies["web"].Drift != "ignore" {
		t.Errorf("%v, problems %v", got, problems)
	}
	next, err := EditConfig("\ufeffreplicas: 2\n", &effect.ConfigChange{Key: "web", Path: []string{"replicas"}, Value: int64(3), Was: int64(2)})
	if err != nil || next != "replicas: 3\n" {
		t.Errorf("%q, %v", next, err)
	}
}
