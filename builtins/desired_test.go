package builtins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Where there is no parent there are no parts.
func TestPartsOutsideOfDesired(t *testing.T) {
	const src = "r = part({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}})"
	for phase, want := range map[spec.Phase]string{
		spec.InRun:     "part is only available in the desired function of a controller",
		spec.InLoad:    "part is only available in the desired function of a controller",
		spec.InEnabled: "part is only available in the desired function of a controller",
		spec.InFilter:  "part is only available in the desired function of a controller",
		spec.InTest:    "part is not available in a test; call it from a hook, and look at what the hook does",
	} {
		if _, err := exec(t, &Context{Phase: phase, Run: newTestRun(new(int)), Log: &memoryLog{}}, src); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", phase, err)
		}
	}
	if _, err := exec(t, &Context{Phase: spec.InDesired, Log: &memoryLog{}}, src); err == nil || !strings.HasSuffix(err.Error(), "part is not available here") {
		t.Errorf("without a run: %v", err)
	}
}

// All parts of a run together have a size that is bounded.
func TestPartsAreBounded(t *testing.T) {
	run := newTestRun(new(int))
	run.Limits.MaxBytes = 2000
	_, err := exec(t, &Context{Phase: spec.InDesired, Run: run, Log: &memoryLog{}},
		"r = [part({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'a'}, 'data': {'k': 'x' * 900}}) for _ in range(3)]")
	if err == nil || !strings.Contains(err.Error(), "effects limit: larger than 2000 bytes together") {
		t.Errorf("got %v", err)
	}
}

// Children carry digests of parts. They are those of this text in each version of Starling: with others all
// children would be written again after an upgrade.
func TestDigestsStay(t *testing.T) {
	yes, no := true, false
	obj := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "b"},
		"stringData": map[string]any{"n": int64(1), "f": 1.5, "text": "<ä>\n", "list": []any{nil, true}},
	}
	for name, p := range map[string]Part{
		"bare":  {Object: obj},
		"none":  {},
		"owner": {Object: obj, Owner: &yes},
		"not":   {Object: obj, Owner: &no, Ready: ReadyExists, Pos: "x.star:1"},
		"fill":  {Object: obj, Owner: &no, Fill: []Fill{{"a", Generated{"password", 20}}, {"b<", Generated{"key", 32}}}},
		"empty": {Object: obj, Fill: []Fill{}},
	} {
		text, err := json.Marshal([]any{p.Object, p.Fill, p.Owner})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if got, err := p.digest(); err != nil || got != hex.EncodeToString(sum[:16]) {
			t.Errorf("%s: got %s and %v, not the digest of %s", name, got, err, text)
		}
	}
}

// The functions of a part stay with it.
func TestReadyFunctions(t *testing.T) {
	v, err := exec(t, &Context{Phase: spec.InDesired, Run: newTestRun(new(int)), Log: &memoryLog{}}, `
def obj(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}

r = [part(obj("a"), ready = lambda child: True), rolling([part(obj("b"))], order = lambda child: 1, pause = lambda ctx: "no")]
`)
	if err != nil {
		t.Fatal(err)
	}
	d, err := DesiredOf(v)
	if err != nil {
		t.Fatal(err)
	}
	if d.Parts[0].ReadyFn == nil || d.Parts[0].Ready != "" || d.Parts[1].Ready != ReadyAuto || d.Rollouts[0].Order == nil || d.Rollouts[0].PauseFn == nil {
		t.Errorf("got %+v", d)
	}
	if d.Parts[0].Pos != "x.star:5" {
		t.Errorf("made at %s", d.Parts[0].Pos)
	}
	if _, err := DesiredOf(starlark.NewDict(0)); err == nil || !strings.Contains(err.Error(), "desired returned dict; it must return a list") {
		t.Errorf("got %v", err)
	}
}
