package jq

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatchJQ(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{"replicas": int64(3), "pass": "hunter2"}}
	got, err := Patch(context.Background(), ".spec.replicas += 1 | del(.spec.pass)", obj)
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"replicas": int64(4)}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if len(obj["spec"].(map[string]any)) != 2 {
		t.Error("the object itself was changed")
	}
	for program, want := range map[string]string{
		"empty":                  "it must return one value",
		"., .":                   "it must return one value",
		".spec.replicas":         "it must return the whole new object, not a int",
		".spec.pass | keys":      "keys",
		".spec |":                "unexpected",
		"def f: f; f":            " limit: a jq program", // of steps, or of time on a slow machine
		"error(\"no replicas\")": "no replicas",
	} {
		_, err := Patch(context.Background(), program, obj)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error is %v, want %q", program, err, want)
		}
	}
}
