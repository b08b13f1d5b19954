package release

import (
	"errors"
	"testing"

	"github.com/starling-operator/starling/modules/chart"
)

func TestMask(t *testing.T) {
	values := map[string]any{
		"db":           map[string]any{"password": "hunter2", "passwordSecretName": "db-secret", "port": int64(5432)},
		"image":        "nginx",
		"api-tokens":   []any{"t0kens", "x"},
		"tokenEnabled": "true",
	}
	rendered := map[string]string{"a": "a: b\n---\nkind: Secret\ndata: {k: c2VjcmV0LWI2NA==}\nstringData: {p: plain-text}\n", "b": "kind: ConfigMap\ndata: {k: public}"}
	target := Target{Input: chart.Input{Values: values}, Secrets: func() []string { return []string{"set-by-a-hook"} }}
	in := "hunter2 aHVudGVyMg== db-secret 5432 nginx set-by-a-hook t0kens x true c2VjcmV0LWI2NA== secret-b64 plain-text public"
	want := "*** *** db-secret 5432 nginx *** *** x true *** *** *** public"
	if got := newMask(target, rendering{files: rendered}).Text(in); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	err := readable(t.Context(), target, rendering{}, &worded{text: ErrFenced.Error() + ": at hunter2", cause: ErrFenced})
	if !errors.Is(err, ErrFenced) || err.Error() != "starling is stopping: at ***" {
		t.Errorf("%v", err)
	}
}
