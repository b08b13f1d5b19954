package record_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

const controllerFile = `
def one(ctx, o):
    data = {"password": base64.encode(o.spec.password)}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": data}
    parts = [part(secret, name = "secret", fill = {"data.made": generate.password(32)})]
    if len(ctx.children) > 0:
        log.info("there are children", password = o.spec.password)
    parts.append(part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, name = "late", after = ["secret"]))
    return parts

controller("one", k8s.watch("example.org/v1", "Parent"), one, owns = [owns("v1", "ConfigMap"), owns("v1", "Secret")])
`

const controllerTest = `
def test_one(t):
    t.start()
    t.cluster.apply({"apiVersion": "example.org/v1", "kind": "Parent", "metadata": {"name": "p", "namespace": "a"}, "spec": {"password": "hush-hush"}})
    t.cluster.patch("v1", "Secret", "s", "a", merge = {"data": {"password": base64.encode("by-somebody")}})
    t.clock.advance("1m")
    print("made " + t.cluster.get("v1", "Secret", "s", "a").data.made)
    t.cluster.delete("example.org/v1", "Parent", "p", "a")
`

func controllerTree(t *testing.T, file, test string) *generation.Generation {
	t.Helper()
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":         {Data: []byte("module(grants = [grant(\"v1\", \"Secret\", verbs = [\"get\", \"list\", \"watch\"], namespaces = [\"*\"])])\n")},
		"web/hooks/one.star":      {Data: []byte(file)},
		"web/hooks/one_test.star": {Data: []byte(test)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
}

// A run of a controller has the parent and its children, and what was decided. The content of Secrets is
// sealed, and shown to nobody.
func TestControllersAreRecorded(t *testing.T) {
	g := controllerTree(t, controllerFile, controllerTest)
	var traces []*record.Trace
	var made string
	err := testrunner.Run(t.Context(), testrunner.Options{Tree: g.Tree, Generation: g, Std: stdlib.FS, Record: func(tr *record.Trace) { traces = append(traces, tr) }}, func(f testrunner.File) {
		if f.Failed() {
			t.Errorf("%+v", f)
			return
		}
		for _, line := range f.Tests[0].Log {
			if _, after, is := strings.Cut(line, "made "); is {
				data, err := base64.StdEncoding.DecodeString(after)
				made = string(data)
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err != nil || len(made) != 32 {
		t.Fatal(made, err)
	}
	k := keep(t, record.StoreOptions{}, traces...)
	replayAll(t, k)

	hidden := []string{made, base64.StdEncoding.EncodeToString([]byte(made)), "hush-hush", base64.StdEncoding.EncodeToString([]byte("hush-hush")), "by-somebody"}
	files, err := filepath.Glob(filepath.Join(k.dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range hidden {
			if bytes.Contains(data, []byte(text)) {
				t.Errorf("%s is in a file", text)
			}
		}
	}
	headers, _, err := record.List(k.dir, k.key)
	if err != nil {
		t.Fatal(err)
	}
	var decided []string
	other := controllerTree(t, strings.Replace(controllerFile, `name = "late", after`, `name = "renamed", after`, 1), controllerTest)
	differ := 0
	for _, h := range slices.Backward(headers) {
		r, err := record.Load(k.dir, h.ID, k.key)
		if err != nil {
			t.Fatal(err)
		}
		dump, err := r.Dump()
		if err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(dump)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range hidden {
			if strings.Contains(string(shown), text) {
				t.Errorf("%s shows %s: %s", h.ID, text, shown)
			}
		}
		lines := record.NewMask(r).Lines(r.Outcome, false)
		decided = append(decided, lines[0])
		again, err := record.Replay(t.Context(), r, record.ReplayOptions{Generation: other})
		if err != nil {
			t.Fatal(err)
		}
		if !again.Same {
			differ++
		}
	}
	want := []string{
		"decided: create Secret a/s: it is not there",
		"decided: create ConfigMap a/c: it is not there",
		"decided: apply Secret a/s: kubectl has changed it",
		"decided: delete Secret a/s: no part wants it",
	}
	for _, line := range want {
		if !slices.Contains(decided, line) {
			t.Errorf("no run has %q, but %q", line, decided)
		}
	}
	if differ == 0 {
		t.Error("another version of the controller decides the same")
	}
	t.Logf("%d runs: %q", len(headers), decided)
}
