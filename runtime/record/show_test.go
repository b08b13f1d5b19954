package record

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

func TestLines(t *testing.T) {
	ref := effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "a"}
	o := Outcome{
		Effects: effect.Effects{
			Writes: []effect.Write{
				{Kind: effect.WriteApply, Ref: ref, Object: map[string]any{"kind": "Secret", "data": map[string]any{"x": "c2VjcmV0cw=="}}},
				{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchMerge, Subresource: "status", Body: map[string]any{"stringData": map[string]any{"y": "patched-secret"}}}},
				{Kind: effect.WriteDelete, Ref: effect.Ref{APIVersion: "v1", Kind: "Node", Name: "b"}},
				{Kind: effect.WriteEvent, Ref: ref, Event: &effect.Event{Type: "Normal", Reason: "R", Message: "m\x1b[31m secrets"}},
				{Kind: effect.WriteSet, Ref: effect.Ref{Name: "s"}, Set: &effect.Set{Name: "s", Members: []effect.Write{{Kind: effect.WriteApply, Ref: ref}}}},
			},
			Values: []effect.ValueOp{
				{Op: effect.OpRemove, Path: []string{"a.b", "c"}},
				{Op: effect.OpMerge, Path: []string{"d"}, Value: map[string]any{"long": strings.Repeat("x", 300)}},
				{Op: effect.OpSet, Path: []string{"e"}, Value: map[string]any{"f": "of the type", "g": "-----BEGIN EC PRIVATE KEY-----\nx"}, Secrets: [][]string{{"f"}}},
			},
			Metrics:  []effect.Metric{{Kind: effect.MetricExpire, Group: "g"}, {Kind: effect.MetricAdd, Name: "n", Value: 1.5}},
			Messages: []effect.Message{{Request: effect.Request{Method: "POST", URL: "https://h/p?token=1", Headers: map[string]string{"A": "header-secret"}}}},
			Requeue:  time.Minute,
		},
		Response: builtins.Response{Warnings: []string{"w"}, Denied: &builtins.Denial{Code: 403, Message: "no patched-secret"}, Reply: &builtins.Reply{Status: 200, Body: []byte("header-secret")}},
		Logs:     []Line{{Level: builtins.LevelInfo, Text: "of the type", Fields: []builtins.Field{{Key: "k", Value: []any{"c2VjcmV0cw=="}}}}},
		Error:    "broken by header-secret",
	}
	want := []string{
		"k8s.apply v1 Secret n/a", "k8s.patch v1 Secret n/a (merge, status)", "k8s.delete v1 Node b",
		"k8s.event v1 Secret n/a: Normal R: m [31m ***", `k8s.apply_set "s" of 1 objects`, "  apply v1 Secret n/a",
		`values.remove ["a.b"].c`, `values.merge d = {"long":"` + strings.Repeat("x", maxShown-9) + "…", `values.set e = {"f":"***","g":"***"}`,
		"metrics.expire g", "metrics.add n 1.5", "http.send POST https://h/p", "requeue in 1m0s",
		"warn: w", "deny 403: no ***", "reply 200 ***", `info: *** k=["***"]`, "error: broken by ***",
	}
	m := NewMask(&Record{Outcome: o})
	if diff := cmp.Diff(want, m.Lines(o, false)); diff != "" {
		t.Error(diff)
	}
	details := strings.Join(m.Lines(o, true), "\n")
	for _, secret := range []string{"c2VjcmV0cw==", "secrets", "patched-secret", "header-secret", "of the type"} {
		if strings.Contains(details, secret) {
			t.Errorf("%q is shown in\n%s", secret, details)
		}
	}
}

func TestDumpHidesSecrets(t *testing.T) {
	m, s := newModule(t, asksAll), newStore(t, StoreOptions{})
	trace := m.run(t, nodes("a"))
	trace.request.Events[0].Result = object.New(map[string]any{"kind": "Secret", "data": map[string]any{"x": "ZXZlbnQtc2VjcmV0"}})
	put(t, s, trace)
	dump, err := opened(t, s, 1).Dump()
	if err != nil {
		t.Fatal(err)
	}
	data, err := codec.Write(dump)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{secretText, base64Of([]byte(secretText)), "ZXZlbnQtc2VjcmV0", "event-secret"} {
		if strings.Contains(string(data), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	if len(dump.Reads) != 5 || dump.Reads[0].Question != "k8s.get of v1 Secret ns/s" || dump.Inputs.Snapshots["nodes"] == nil || dump.Inputs.Events == nil {
		t.Errorf("%+v", dump)
	}
}

func TestDiff(t *testing.T) {
	text := func(s string) []string { return strings.Fields(s) }
	for _, tt := range []struct{ a, b, want string }{
		{"a b", "a b", ""},
		{"", "a", "+ a"},
		{"a", "", "- a"},
		{"1 2 3 4 5 6 7 8", "1 2 3 4 x 6 7 8", "  …|  3|  4|- 5|+ x|  6|  7|  …"},
		{"a b c", "b c d", "- a|  b|  c|+ d"},
	} {
		if got := strings.Join(Diff(text(tt.a), text(tt.b)), "|"); got != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
	long := make([]string, 3000)
	other := make([]string, 3000)
	for i := range long {
		long[i], other[i] = "a", "b"
	}
	if got := Diff(long, other); len(got) != 6000 {
		t.Errorf("%d lines", len(got))
	}
}
