package record_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

const readingFile = `
def one(ctx, o):
    secret = ctx.reads.secrets.get("a/" + o.spec.secret)
    if not secret:
        return waiting("its Secret")
    log.info("found", k = secret.data.k)
    data = {"x": " ".join(ctx.reads.nodes.by("zone", "x")), "all": " ".join(ctx.reads.nodes.all())}
    return [part({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})]

controller(
    "one",
    k8s.watch("example.org/v1", "Parent"),
    one,
    owns = [owns("v1", "ConfigMap")],
    reads = {
        "nodes": k8s.watch("v1", "Node", filter = lambda o: o.metadata.name, index = {"zone": "metadata.labels.zone"}),
        "secrets": k8s.watch("v1", "Secret"),
    },
)
`

const readingTest = `
def secret(name, text):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "a"}, "data": {"k": base64.encode(text)}}

def node(name, zone):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": zone}}}

def test_one(t):
    t.start()
    t.cluster.apply({"apiVersion": "example.org/v1", "kind": "Parent", "metadata": {"name": "p", "namespace": "a"}, "spec": {"secret": "s"}})
    t.cluster.apply(node("n1", "x"), node("n2", "y"), secret("other", "nobody-looked"))
    t.cluster.apply(secret("s", "hush-hush"))
    t.clock.advance("1m")
    t.cluster.apply(node("n3", "x"))
    t.clock.advance("1m")
    t.expect(t.cluster.get("v1", "ConfigMap", "c", "a").data).equals({"x": "n1 n3", "all": "n1 n2 n3"})
`

// A run of a controller has the rows that it has looked up, and no others; what is in Secrets among them is
// sealed, and shown to nobody.
func TestLookupsAreRecorded(t *testing.T) {
	g := controllerTree(t, readingFile, readingTest)
	var traces []*record.Trace
	err := testrunner.Run(t.Context(), testrunner.Options{Tree: g.Tree, Generation: g, Std: stdlib.FS, Record: func(tr *record.Trace) { traces = append(traces, tr) }}, func(f testrunner.File) {
		if f.Failed() {
			t.Errorf("%+v", f)
		}
	})
	if err != nil || t.Failed() {
		t.Fatal(err)
	}
	k := keep(t, record.StoreOptions{}, traces...)
	replayAll(t, k)

	hidden := []string{"hush-hush", base64.StdEncoding.EncodeToString([]byte("hush-hush")), base64.StdEncoding.EncodeToString([]byte("nobody-looked"))}
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
	elsewhere := controllerTree(t, strings.Replace(readingFile, `get("a/" +`, `get("b/" +`, 1), readingTest)
	looked := map[string]bool{}
	for _, h := range headers {
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
		for _, read := range dump.Reads {
			rows, _ := read.Answer.([]any)
			looked[fmt.Sprintf("%s: %d", read.Question, len(rows))] = true
		}
		again, err := record.Replay(t.Context(), r, record.ReplayOptions{Generation: elsewhere})
		if err != nil {
			t.Fatal(err)
		}
		const want = `the record has no answer to ctx.reads.secrets.get("b/s"): the recorded run did not ask`
		if again.Same || !strings.Contains(again.Error, want) {
			t.Errorf("another version, which looks elsewhere, comes to %+v", again)
		}
	}
	for _, want := range []string{
		`ctx.reads.secrets.get("a/s"): 0`, `ctx.reads.secrets.get("a/s"): 1`,
		`ctx.reads.nodes.by("zone", …): 1`, `ctx.reads.nodes.by("zone", …): 2`, `ctx.reads.nodes.all(): 2`, `ctx.reads.nodes.all(): 3`,
	} {
		if !looked[want] {
			t.Errorf("no run has %s, but %v", want, looked)
		}
	}
	if len(looked) != 6 {
		t.Errorf("runs have looked at %v", looked)
	}
}
