//go:build e2e

package cluster

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// The API server's own refusals of Secrets say why, and quote nothing.
func TestRealRefusalsOfSecrets(t *testing.T) {
	w := newRealWorld(t)
	secret := func(kind effect.WriteKind, fields map[string]any) effect.Write {
		fields["apiVersion"], fields["kind"], fields["metadata"] = "v1", "Secret", map[string]any{"name": "s", "namespace": w.ns}
		return effect.Write{Kind: kind, Force: true, Ref: w.ref("v1", "Secret", "s"), Object: fields}
	}
	patch := func(typ effect.PatchType, body any) effect.Write {
		return effect.Write{Kind: effect.WritePatch, Ref: w.ref("v1", "Secret", "s"), Patch: &effect.Patch{Type: typ, Body: body}}
	}
	refused := func(wr effect.Write, want string) {
		t.Helper()
		err := w.refused(wr, "cannot "+string(wr.Kind)+" Secret "+w.ns+"/s: ")
		if err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("error is\n%v, want\n%s", err, want)
		}
	}
	for _, kind := range []effect.WriteKind{effect.WriteApply, effect.WriteCreate} {
		refused(secret(kind, map[string]any{"data": map[string]any{"p": "hunter2!!"}}), "illegal base64 data at input byte 7")
		refused(secret(kind, map[string]any{"stringData": map[string]any{"p": map[string]any{"hunter2": "hunter2"}}}), "stringData")
		refused(secret(kind, map[string]any{"stringData": map[string]any{"p q": "hunter2"}}), "data[p q]: invalid value: a valid config key must consist of")
	}
	refused(secret(effect.WriteApply, map[string]any{"strData": map[string]any{"p": "hunter2"}}), "the kind has no field strData")
	w.write(secret(effect.WriteApply, map[string]any{"immutable": true, "stringData": map[string]any{"p": "hunter2"}}))
	refused(secret(effect.WriteApply, map[string]any{"immutable": true, "stringData": map[string]any{"p": "hunter22"}}), "data: forbidden: field is immutable")
	refused(patch(effect.PatchMerge, map[string]any{"data": map[string]any{"q": "hunter2!"}}), "patch: invalid value: illegal base64 data")
	refused(patch(effect.PatchStrategic, map[string]any{"data": []any{"hunter2"}}), "patch: invalid value: cannot restore map from slice")
}
