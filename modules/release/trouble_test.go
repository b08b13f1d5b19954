package release

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/lane"
)

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An operation that fails while the API server is in trouble is tried again soon, whichever request of it has met
// that; one that the API server refuses is not.
func TestTroubleOfTheServerPasses(t *testing.T) {
	for name, test := range map[string]struct {
		status  int // 0: the connection breaks
		path    string
		passing bool
		says    string
	}{
		"fails":          {500, "/configmaps", true, "no"},
		"is away":        {503, "/secrets", true, "no"},
		"is overloaded":  {429, "/configmaps", true, "no"},
		"cuts the line":  {0, "/configmaps", true, "no"},
		"forbids":        {403, "/configmaps", false, "no"},
		"finds it wrong": {422, "/configmaps", false, "no"},
		"has it already": {409, "/configmaps", false, "no"},
		"has a webhook of others that fails": {500, "/configmaps", false,
			`Internal error occurred: failed calling webhook \"policy.example.org\": failed to call webhook: Post \"https://policy.ns.svc/\": connection refused`},
		"has a webhook of others that is slow": {504, "/configmaps", false,
			`Timeout: failed calling webhook \"policy.example.org\": context deadline exceeded`},
		"has a conversion that fails": {500, "/configmaps", false, `conversion webhook for example.com/v1, Kind=Lamp failed: boom`},
		"forbids secrets":             {403, "/secrets", false, "no"},
		"lacks a right in a revision": {403, "/apps/configmaps", false, `configmaps \"a\" is forbidden: User \"b\" cannot create resource \"configmaps\" in API group \"\"`},
		"lacks a right before one":    {403, "/namespaces", true, `namespaces \"a\" is forbidden: User \"b\" cannot create resource \"namespaces\" in API group \"\"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newManyFixture(t)
			whole := f.server
			f.server = answers(func(r *http.Request) (*http.Response, error) {
				at := r.URL.Path
				if r.Method == http.MethodPatch {
					at = path.Dir(at)
				}
				switch {
				case r.Method == http.MethodGet || !strings.HasSuffix(at, test.path):
					return whole.RoundTrip(r)
				case test.status == 0:
					return nil, io.ErrUnexpectedEOF
				}
				body := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": ` + fmt.Sprint(test.status) + `, "message": "` + test.says + `"}`
				return &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
			_, err := f.Reconcile(t.Context(), f.target(0, "1", "apps"))
			passing := (*lane.Passing)(nil)
			if err == nil || errors.As(err, &passing) != test.passing {
				t.Errorf("%v: passing %v", err, passing != nil)
			}
			f.server = whole
			broken := f.target(0, "1", "apps")
			broken.Chart.Files[1].Data = []byte("{{ fail \"no\" }}")
			if _, err := f.Reconcile(t.Context(), broken); err == nil || errors.As(err, &passing) {
				t.Errorf("a chart that fails later: %v", err)
			}
		})
	}
}
