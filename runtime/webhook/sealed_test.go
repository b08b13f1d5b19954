package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// The label of an instance, which anybody may set, keeps no policy from being asked. A hook sees nothing that such an
// object holds: it may be what another instance keeps. No hook changes it.
func TestTheMarkOfAnInstanceEscapesNoPolicy(t *testing.T) {
	var asked *builtins.Request
	s := newTestServer(t, func(_ context.Context, _ string, r *builtins.Request) (builtins.Response, error) {
		asked = r
		return builtins.Response{Denied: &builtins.Denial{Message: "no", Code: 403}}, nil
	})
	c := s.client(s.rotate(time.Now()).bundle)
	const mark = "starling.dev/instance"
	for _, kind := range []string{"ConfigMap", "Secret", "Lease", "ValidatingWebhookConfiguration"} {
		obj := func(labels map[string]any) map[string]any {
			return map[string]any{
				"apiVersion": "v1", "kind": kind, "data": map[string]any{"a": "hush"}, "stringData": map[string]any{"a": "hush"}, "binaryData": map[string]any{"a": "hush"},
				"metadata": map[string]any{"name": "mine", "namespace": "team", "labels": labels, "annotations": map[string]any{
					"kubectl.kubernetes.io/last-applied-configuration": "hush", "mine": "too",
				}},
			}
		}
		marked, plain := obj(map[string]any{mark: "team.x", "app": "a"}), obj(map[string]any{"app": "a"})
		for name, tt := range map[string]struct {
			is, was any
			hush    int // how often the hook sees what the objects hold
		}{
			"made": {marked, nil, 0}, "changed": {marked, marked, 0}, "deleted": {nil, marked, 0},
			"the mark comes": {marked, plain, 4}, "the mark goes": {plain, marked, 4}, "no mark": {plain, plain, 8},
		} {
			body, err := json.Marshal(map[string]any{"apiVersion": admissionVersion, "kind": "AdmissionReview", "request": map[string]any{
				"uid": "u", "kind": map[string]any{"version": "v1", "kind": kind}, "name": "mine", "namespace": "team", "object": tt.is, "oldObject": tt.was,
			}})
			if err != nil {
				t.Fatal(err)
			}
			asked = nil
			code, text, err := s.post(c, "/validate/web/a/v", string(body))
			if err != nil || code != 200 || !strings.Contains(text, `"allowed":false`) || asked == nil {
				t.Errorf("%s, %s: %d %s %v", kind, name, code, text, err)
				continue
			}
			fields := fieldsOf(t, asked)
			sees := fmt.Sprint(fields["object"], fields["old_object"])
			if n := strings.Count(sees, "hush"); n != tt.hush || !strings.Contains(sees, `"mine": "too"`) || !strings.Contains(sees, `"app": "a"`) {
				t.Errorf("%s, %s: the hook sees %d times %s", kind, name, n, sees)
			}
			asked = nil
			if code, text, err := s.post(c, "/mutate/web/a/m", string(body)); err != nil || code != 200 || (asked == nil) != strings.Contains(text, `"allowed":true`) {
				t.Errorf("%s, %s: %d %s %v", kind, name, code, text, err)
			} else if _, text, _ := s.post(c, "/mutate/web/a/m", strings.ReplaceAll(string(body), `"name":"mine"`, `"name":"second"`)); !strings.Contains(text, `"allowed":true`) {
				t.Errorf("%s, %s: what another instance goes by is changed: %s", kind, name, text)
			} else if is := tt.is == any(nil) || fmt.Sprint(tt.is) == fmt.Sprint(plain); is != (asked != nil) {
				t.Errorf("%s, %s: a hook that changes is asked: %t", kind, name, asked != nil)
			}
		}
	}
}
