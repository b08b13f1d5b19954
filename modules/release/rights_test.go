package release

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/lane"
)

// All rights that a release lacks are told of at once, before a revision is made. A server that does not answer such
// questions, or not all, holds up nothing.
func TestRightsAreAskedForBeforeARevision(t *testing.T) {
	const all = `{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}`
	const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {n: \"{{ .Values.n }}\"}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n" +
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: c, annotations: {helm.sh/hook: test}}\n"
	const secrets, maps = `{"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"]}`, `{"verbs": ["get", "create", "patch"], "apiGroups": [""], "resources": ["configmaps"]}`
	for name, tt := range map[string]struct {
		rules, access string // answers to reviews; "": an error
		lacks         string // at the install
		upgrade       string // at the upgrade
		left          string // the rules by then; "": the same
		test          bool
	}{
		"all":                      {rules: all, access: `"allowed": false`},
		"none":                     {access: `"allowed": false`, rules: " ", lacks: "create secrets in namespace apps, update secrets in namespace apps, get configmaps in namespace apps, create configmaps in namespace apps, patch configmaps in namespace apps;"},
		"no upgrade":               {rules: secrets + "," + maps, access: `"allowed": false`, left: secrets + `, {"verbs": ["get", "create"], "apiGroups": [""], "resources": ["configmaps"]}`, upgrade: "patch configmaps in namespace apps;"},
		"of one object":            {rules: secrets + `, {"verbs": ["get", "create"], "apiGroups": [""], "resources": ["configmaps"]}, {"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"]}`, access: `"allowed": false`},
		"of tests that run":        {rules: secrets + "," + maps, access: `"allowed": false`, test: true, lacks: "delete jobs.batch in namespace apps, create jobs.batch in namespace apps, get jobs.batch in namespace apps;"},
		"reviews are refused":      {},
		"rules alone are refused":  {access: `"allowed": true`},
		"an authorizer that fails": {rules: " ", access: `"allowed": false, "evaluationError": "webhook"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newManyFixture(t)
			whole, asked := f.server, 0
			f.server = answers(func(r *http.Request) (*http.Response, error) {
				at, is := strings.CutPrefix(r.URL.Path, "/apis/authorization.k8s.io/v1/")
				if !is {
					return whole.RoundTrip(r)
				}
				asked++
				status, body := 201, `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {`+tt.access+"}}"
				if at == "selfsubjectrulesreviews" {
					body = `{"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "status": {"incomplete": false, "nonResourceRules": [], "resourceRules": [` + tt.rules + "]}}"
				}
				if at == "selfsubjectrulesreviews" && tt.rules == "" || at != "selfsubjectrulesreviews" && tt.access == "" {
					status, body = 403, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no"}`
				}
				return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
			for n, lacks := range []string{tt.lacks, tt.upgrade} {
				target := f.target(0, fmt.Sprint(n), "apps")
				target.Chart.Files[1].Data, target.Test = []byte(template), tt.test
				f.writes, asked = nil, 0
				if n > 0 {
					tt.rules = cmp.Or(tt.left, tt.rules)
				}
				_, err := f.Reconcile(t.Context(), target)
				passing := (*lane.Passing)(nil)
				if lacks == "" && err != nil || lacks != "" && (err == nil || !strings.Contains(err.Error(), "rights that Starling lacks: "+lacks) || !errors.As(err, &passing) || len(f.writes) > 0) {
					t.Fatalf("try %d: %v, %d writes", n, err, len(f.writes))
				}
				if tt.rules == all && asked > 1 {
					t.Errorf("%d reviews", asked)
				}
				if lacks != "" {
					break
				}
			}
		})
	}
}
