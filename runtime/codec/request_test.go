package codec

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
)

func TestRequestsComeBack(t *testing.T) {
	for name, r := range map[string]*builtins.Request{
		"received": (&builtins.Received{Method: "POST", Path: "/x", Query: map[string]string{"a": "b"}, Headers: map[string]string{"c": "d"}, Body: "\xff"}).Request("b"),
		"review": (&builtins.Review{UID: "u", Operation: "UPDATE", Object: map[string]any{"a": int64(1)}, OldObject: map[string]any{"a": int64(2)},
			Kind: "X", User: builtins.ReviewUser{Name: "me", Groups: []string{"g"}, Extra: map[string][]string{"e": {"f"}}}, DryRun: true}).Request("b"),
		"converted": (&builtins.Review{Operation: "CREATE", Kind: "X", Resource: "xs", ResourceAPIVersion: "x/v2",
			Asked: &builtins.ReviewTarget{APIVersion: "x/v1", Kind: "X", Resource: "xs", ResourceAPIVersion: "x/v1"}}).Request("b"),
		"late":       (&builtins.Review{Operation: "CREATE", Late: func(name string) (map[string]any, error) { return map[string]any{"late": name}, nil }}).Request("b"),
		"conversion": {Binding: "b", Objects: []map[string]any{{"kind": "X"}}, To: "x/v1"},
	} {
		data, err := Write(RequestOf(r))
		if err != nil {
			t.Fatal(err)
		}
		var back Request
		if err := Read(data, &back); err != nil {
			t.Fatal(err)
		}
		got := back.Request()
		if got.Fields.String() != r.Fields.String() || got.Binding != "b" || got.To != r.To || len(got.Objects) != len(r.Objects) {
			t.Errorf("%s: got %v, want %v", name, got.Fields, r.Fields)
		}
		if name == "late" {
			if m, err := got.Review.Late("options"); err != nil || m["late"] != "options" {
				t.Error(m, err)
			}
		}
	}
	if RequestOf(nil).Request() != nil {
		t.Error("no request has become one")
	}
}
