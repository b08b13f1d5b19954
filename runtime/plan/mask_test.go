package plan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/sim"
)

const pem = `-----BEGIN PRIVATE KEY-----
MHcCAQEEICJVKPPw2bWeBwxlq64LzwRPuHjSAiSyFPpE8xlSlwJIoAoGCCqGSM49
AwEHoUQDQgAEiqDEK7v7ma7X6i9TOL9mdWk8WxxX7UN7P7n8tpiDGIX/iNLGUGeJ
-----END PRIVATE KEY-----
`

// leaks are texts that no plan may show.
var leaks = []string{"MHcCAQEEICJV", "AwEHoUQDQgAE", "open sesame", "se/sa&me<1>", `quo\"te`, `quo\\\"te`, "inner-word-9", "98765432", "open+sesame", "open%20sesame", "made-up-word-7",
	base64.StdEncoding.EncodeToString([]byte("user:open sesame")), base64.StdEncoding.EncodeToString([]byte("open sesame"))}

// Whatever hooks and charts make of secrets, no plan shows them.
func TestNoSecretLeaks(t *testing.T) {
	secret := thing("Secret", "default", "token", nil)
	secret["stringData"] = map[string]any{
		"word": "open sesame", "key": pem, "odd": "se/sa&me<1>", "quote": `quo"te-it`, "number": "98765432",
		"config.json": `{"auths": {"registry": {"password": "inner-word-9"}}}`,
	}
	files := web(map[string]string{
		"web/hooks/b.star": `
def f(ctx):
    s = {n: reveal(k8s.secret("token", n, "default")) for n in ["word", "key", "odd", "quote", "number", "config.json"]}
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leak", "annotations": {"a": s["word"]}}, "data": {
        "pem": s["key"], "indented": "key: |\n" + "\n".join(["    " + l for l in s["key"].split("\n")]),
        "json": json.encode({"a": s}), "twice": json.encode(json.encode(s)), "odd": s["odd"],
        "basic": "Basic " + base64.encode("user:" + s["word"]), "base": base64.encode(s["word"]),
        "url": "https://x/?p=" + s["word"].replace(" ", "+") + "&q=" + s["word"].replace(" ", "%20"), "inner": json.decode(s["config.json"])["auths"]["registry"]["password"],
    }})
    k8s.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"password-is.98765432": "x"}}})
    values.set(["internal", "by", s["word"]], 1)
    values.set("internal.plain", "is " + s["word"])
    values.set("internal.number", int(s["number"]))
    values.set("internal.password", "abc")
    values.set("internal.made", "made-up-word-7" + k8s.secret("token", "word", "default"))
    values.set("internal.auth", {"existingSecret": "web-login", "password": 98765432})
    log.info(s["word"])

def bad(ctx):
    fail("cannot log in with " + reveal(k8s.secret("token", "word", "default")) + " and " + json.encode(reveal(k8s.secret("token", "key", "default"))))

hook(f, on = [startup()])
hook(bad, on = [schedule("0 * * * *"), after_helm])
`,
		"web/templates/cm.yaml": webTemplate + `  all: {{ .Values.internal | toJson | quote }}
  login: web-login
---
apiVersion: v1
kind: Secret
metadata: {name: pem, annotations: {note: {{ index .Values.internal.plain | quote }}}}
stringData:
  short: x1
  key: |
    -----BEGIN PRIVATE KEY-----
    MHcCAQEEICJVKPPw2bWeBwxlq64LzwRPuHjSAiSyFPpE8xlSlwJIoAoGCCqGSM49
    -----END PRIVATE KEY-----
`,
		"web/module.star": strings.Replace(webModule, "grants = [", `grants = [grant("v1", "Node", verbs = ["*"]), `, 1),
	})
	base := running(t, map[string]string{"other/module.star": "module()\n"}, thing("Node", "", "a", nil), secret, thing("Namespace", "", "web", nil))
	clear := func(what, text string) {
		t.Helper()
		for _, leak := range leaks {
			if strings.Contains(text, leak) {
				t.Errorf("%s shows %q:\n%s", what, leak, text)
			}
		}
	}
	p, text := planned(t, base, files, nil)
	clear("the plan", text)
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	clear("its JSON form", string(data))
	for _, want := range []string{"cannot log in with ***", "web-login", `values.internal.password: "***"`, `values.internal.by.***: 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	w, err := base.Fork()
	if err != nil {
		t.Fatal(err)
	}
	w.Use(load(t, files))
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := w.ModuleRelease(t.Context(), "web")
	if err != nil || r == nil {
		t.Fatalf("no release: %v\n%s", err, text)
	}
	manifest, err := MaskManifest(w, r)
	if err != nil {
		t.Fatal(err)
	}
	clear("the manifest", manifest)
	if strings.Contains(manifest, "x1") || strings.Count(manifest, "kind: ") != strings.Count(r.Manifest, "kind: ") || !strings.Contains(manifest, "login: web-login") {
		t.Errorf("the manifest is\n%s\nand was\n%s", manifest, r.Manifest)
	}
	clear("an error", MaskText(w, "no: open sesame"))
}

// Under the key "secret" mostly stands the name of one. It is shown where there is such a Secret, and nothing else is.
func TestNamesOfSecretsAreShown(t *testing.T) {
	base := running(t, map[string]string{"other/module.star": "module()\n"})
	_, text := planned(t, base, web(map[string]string{"web/hooks/b.star": `
def f(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-tls"}, "stringData": {"key": "open sesame"}})
    values.set("internal.tls", {"secret": "web-tls"})
    values.set("internal.nobody", {"secret": "sesame-word"})
    values.set("internal.same", {"secret": "open sesame"})
    values.set("internal.login", {"password": "sesame-pass"})

hook(f, on = [startup()])
`}), nil)
	for _, want := range []string{`values.internal.tls.secret: "web-tls"`, `values.internal.nobody.secret: "***"`, `values.internal.same.secret: "***"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "sesame") {
		t.Errorf("a secret is in\n%s", text)
	}
}

// Every form of a manifest keeps its documents.
func TestMaskManifest(t *testing.T) {
	w := running(t, map[string]string{"other/module.star": "module()\n"})
	for _, tt := range []struct{ in, out string }{
		{"", ""},
		{"# nothing\n", "# nothing\n"},
		{"---\n# Source: a\nkind: Secret\ndata: {a: eA==}\n---\n# Source: b\nkind: ConfigMap\n", "---\n# Source: a\ndata:\n  a: '***'\nkind: Secret\n---\n# Source: b\nkind: ConfigMap\n"},
		{"kind: Secret\ndata: {a: eA==}\n", "data:\n  a: '***'\nkind: Secret\n"},
		{"--- # here\nkind: Secret\nstringData:\n  a: |\n    -----BEGIN X-----\n    eA==\n    ---\n    b\n", "---\nkind: Secret\nstringData:\n  a: '***'\n"},
		{"kind: List\nitems:\n- kind: Secret\n  data: {a: eA==}\n", "items:\n- data:\n    a: '***'\n  kind: Secret\nkind: List\n"},
	} {
		got, err := MaskManifest(w, &sim.Release{Name: "a", Manifest: tt.in})
		if err != nil || got != tt.out {
			t.Errorf("%q became %q, %v", tt.in, got, err)
		}
	}
	if _, err := MaskManifest(w, &sim.Release{Name: "a", Manifest: "a: [", Values: map[string]any{"password": "hush-hush"}}); err == nil {
		t.Error("what is no YAML passes")
	}
}

// Lines of a text of many are printed one by one, and masked as a whole before.
func TestLinesOfKeysStayHidden(t *testing.T) {
	p := &Plan{Objects: []Object{{Action: Update, Fields: []Field{{Path: "data.key"}}}}}
	m := &masker{}
	m.Secret(pem)
	var old, now any = "a\n" + strings.ReplaceAll(pem, "\n", "\n  "), "b\n" + pem
	p.Objects[0].Fields[0].Old, p.Objects[0].Fields[0].New = &old, &now
	p.Objects[0].Fields = m.masked(p.Objects[0].Fields)
	var b bytes.Buffer
	if err := p.Print(&b, PrintOptions{}); err != nil || strings.Contains(b.String(), "MHcC") || strings.Contains(b.String(), "AwEH") {
		t.Errorf("%v %s", err, b.String())
	}
}

// Items of a list of Secrets need not say that they are some.
func TestSecretsOfAListAreHidden(t *testing.T) {
	secret := map[string]any{"a": "plain"}
	list := map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{1, map[string]any{"stringData": secret}}}
	if !hideData(list) || secret["a"] != hiddenText {
		t.Errorf("%v", list)
	}
}
