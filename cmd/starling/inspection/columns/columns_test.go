package columns

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
)

// Columns are those of kubectl's printer, byte for byte.
func TestCustomColumnsAreThoseOfKubectl(t *testing.T) {
	rows := []map[string]any{
		{"name": "web", "state": "ready", "revision": int64(1234567), "release": map[string]any{"name": "w", "revision": int64(3)},
			"drifted": []any{map[string]any{"object": "ConfigMap a/b"}, map[string]any{"object": "Secret a/c"}}},
		{"name": "a-much-longer-name", "state": nil, "release": "\x1b[31mred", "drifted": []any{}},
		{},
	}
	for _, spec := range []string{
		"NAME:.name", "NAME:name,STATE:{.state}", "N:{name},R:.release.revision,BIG:.revision", "D:.drifted[*].object,D0:.drifted[0].object",
		"R:.release", "NONE:.a.b.c,X:.drifted[?(@.object=='Secret a/c')].object", "ALL:.drifted",
		"", "NAME", "NAME:.a.{b", "A:.name,", "X:.drifted[", "OUT:.drifted[7].object",
	} {
		for _, noHead := range []bool{false, true} {
			ours, oursErr := New(spec, noHead)
			theirs, theirsErr := get.NewCustomColumnsPrinterFromSpec(spec, nil, noHead)
			var got, want bytes.Buffer
			gotTabs, wantTabs := printers.GetNewTabWriter(&got), printers.GetNewTabWriter(&want)
			for _, row := range rows {
				if oursErr == nil {
					oursErr = ours.Print(gotTabs, row)
				}
				if theirsErr == nil {
					theirsErr = theirs.PrintObj(&unstructured.Unstructured{Object: row}, wantTabs)
				}
			}
			if (oursErr == nil) != (theirsErr == nil) {
				t.Errorf("%q: %v, and kubectl says %v", spec, oursErr, theirsErr)
				continue
			}
			if gotTabs.Flush() != nil || wantTabs.Flush() != nil || oursErr == nil && got.String() != want.String() {
				t.Errorf("%q:\n%s\nkubectl prints\n%s", spec, got.String(), want.String())
			}
		}
	}
}
