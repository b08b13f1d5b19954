package cluster

import (
	"net/http"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// The refusal of a Secret says why, and shows no part of a value: neither of what was sent
// nor of what is there. Messages are those of Kubernetes.
func TestRefusalsOfSecrets(t *testing.T) {
	const (
		base64Error = `failed to convert new object (a/x; /v1, Kind=Secret) to proper version: unable to convert unstructured object to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 7`
		denied      = `admission webhook "policy.example.com" denied the request: `
	)
	one := func(field, kind, message string) []any {
		return []any{map[string]any{"field": field, "reason": kind, "message": message}}
	}
	for _, test := range []struct {
		name, reason, message string
		code                  int
		causes                []any
		want                  string
		unread                string // what is said when what is there cannot be read; "": the same
	}{
		{"no namespace", "NotFound", `namespaces "apart" not found`, 404, nil, `namespaces "apart" not found`, ""},
		{"no right", "Forbidden", `secrets "x" is forbidden: User "u" cannot patch resource "secrets" in API group "" in the namespace "a"`, 403, nil, "not allowed to patch secrets in namespace a: ", ""},
		{"a quota", "Forbidden", `secrets "x" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=5, limited: secrets=5`, 403, nil,
			`secrets "x" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=5, limited: secrets=5`, ""},
		{"no base64", "", base64Error, 500, nil, base64Error, "the API server refuses it (500); its message is not shown, because it may quote the secret"},
		{"not JSON", "BadRequest", `invalid character 'h' looking for beginning of value`, 400, nil, "invalid character looking for beginning of value", "the API server refuses it (400 BadRequest); "},
		{"unknown field", "", `failed to create typed patch object (a/x; /v1, Kind=Secret): .strData: field not declared in schema`, 500, nil,
			`the kind has no field strData`, "the API server refuses it (500); "},
		{"wrong type", "", `.data.p: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":"hunter2 sent"}}`, 500, nil,
			"data.p must be a text, not another type: write str(x)", "the API server refuses data.p"},
		{"a webhook", "", denied + "secrets need a label team", 400, nil, denied + "secrets need a label team",
			`admission webhook "policy.example.com" denied the request; what else it says is not shown, because it may quote the secret`},
		{"a webhook that quotes", "", denied + `"hunter2 sent" is as weak as "hunter2 there", and aHVudGVyMiBzZW50 as er2 there`, 403, nil,
			denied + `"***" is as weak as "***", and *** as ***`, `admission webhook "policy.example.com" denied the request; `},
		{"a policy", "Forbidden", `secrets "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: hunter2 sent`, 403, nil,
			`secrets "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ***`,
			`secrets "x" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request; what else `},
		{"invalid key", "Invalid", "x is invalid: hunter2 sent", 422, one("data[p q]", "FieldValueInvalid", `Invalid value: "p q": a valid config key must consist of alphanumeric characters`),
			"data[p q]: invalid value: a valid config key must consist of alphanumeric characters", "data[p q]: invalid"},
		{"invalid value", "Invalid", "", 422, one("data[p]", "FieldValueInvalid", `Invalid value: "<secret contents redacted>": invalid character 'h' looking for hunter2 sent`),
			"data[p]: invalid value: invalid character looking for ***", "data[p]: invalid"},
		{"invalid patch", "Invalid", "", 422, one("patch", "FieldValueInvalid", `Invalid value: "{\"data\":{\"a\":\"hunter2 there\"}}": illegal base64 data at input byte 8`),
			"patch: invalid value: illegal base64 data at input byte 8", "patch: invalid"},
		{"required", "Invalid", "", 422, one("data[tls.key]", "FieldValueRequired", "Required value"), "data[tls.key]: required value", ""},
		{"immutable", "Invalid", "", 422, one("data", "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"),
			"data: forbidden: field is immutable when `immutable` is set", "data: forbidden"},
		{"too long", "Invalid", "", 422, one("data", "FieldValueTooLong", "Too long: may not be more than 1048576 bytes"), "data: too long: may not be more than 1048576 bytes", "data: too long"},
		{"not found", "Invalid", "", 422, one("data[p]", "FieldValueNotFound", `Not found: "hunter2 somewhere"`), "data[p]: notFound", ""},
	} {
		for _, readable := range []bool{true, false} {
			name, want := test.name, test.want
			if !readable && test.unread != "" {
				want = test.unread
			}
			t.Run(name, func(t *testing.T) {
				api := apitest.New(t)
				api.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "a", "name": "x"}, "data": map[string]any{"p": "aHVudGVyMiB0aGVyZQ=="}})
				if !readable {
					api.Deny("get secrets", 403)
				}
				c := newClientFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodPatch {
						api.ServeHTTP(w, r)
						return
					}
					apitest.Status(w, test.code, test.reason, test.message, map[string]any{"name": "x", "causes": test.causes})
				}))
				_, err := c.Write(t.Context(), "", effect.Write{Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "x"},
					Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "a", "name": "x"}, "stringData": map[string]any{"p": "hunter2 sent", "namespace": "apart"}}})
				if err == nil {
					t.Fatal("no error")
				}
				got := strings.TrimPrefix(err.Error(), "cannot apply Secret a/x: ")
				if got != want && !(strings.HasSuffix(want, " ") && strings.HasPrefix(got, want)) {
					t.Errorf("readable %t:\n got %s\nwant %s", readable, got, want)
				}
				if strings.Contains(got, "hunter2") || strings.Contains(got, "aHVud") {
					t.Errorf("it shows a value: %s", got)
				}
			})
		}
	}
}
