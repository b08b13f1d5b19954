package release

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revisionsOf are the revisions of release 0 by their labels, the newest first.
func (f *manyFixture) revisionsOf(ctx context.Context, t *testing.T) (out []string) {
	t.Helper()
	list, err := f.core.Secrets("apps").List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=m00"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		out = append(out, "v"+s.Labels["version"]+" "+s.Labels["status"])
	}
	slices.Sort(out)
	return out
}

// failsOnce has the next update of a revision's Secret fail, before or after it is carried out.
func (f *manyFixture) failsOnce(secret string, after bool) {
	whole, failed := f.server, false
	f.server = answers(func(r *http.Request) (*http.Response, error) {
		if failed || r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, secret) {
			return whole.RoundTrip(r)
		}
		failed = true
		if after {
			if resp, err := whole.RoundTrip(r); err != nil {
				return resp, err
			}
		}
		return nil, errors.New("the line is cut")
	})
}

// Helm only logs that it could not mark the revision before as superseded: two would be deployed for good. It is an error
// here, after which that is done, and no revision is made for it.
func TestOneRevisionIsDeployed(t *testing.T) {
	for name, look := range map[string]func(*manyFixture){
		"this process goes on": func(*manyFixture) {},
		"another one":          func(f *manyFixture) { f.Manager = f.manager() },
		"by a list": func(f *manyFixture) {
			f.Manager = f.manager()
			f.listOnce(f.t.Context(), "apps")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newManyFixture(t)
			f.want(0, "1", ActionInstalled, "apps")
			f.failsOnce("/sh.helm.release.v1.m00.v1", false)
			res, err := f.Reconcile(t.Context(), f.target(0, "2", "apps"))
			if err == nil || !strings.Contains(err.Error(), "the end of the action is not recorded") || res.Action != ActionUpgraded {
				t.Errorf("%+v, %v", res, err)
			}
			if got := f.revisionsOf(t.Context(), t); !slices.Equal(got, []string{"v1 deployed", "v2 deployed"}) {
				t.Fatalf("the fault has another effect: %v", got)
			}
			look(f)
			f.want(0, "2", ActionUnchanged, "apps")
			if got := f.revisionsOf(t.Context(), t); !slices.Equal(got, []string{"v1 superseded", "v2 deployed"}) {
				t.Errorf("revisions: %v", got)
			}
		})
	}
}

// An upgrade whose last answer is lost has changed the release: hooks that come after a change must hear of it.
func TestAnUpgradeWhoseAnswerIsLostHasChangedTheRelease(t *testing.T) {
	f := newManyFixture(t)
	f.want(0, "1", ActionInstalled, "apps")
	f.failsOnce("/sh.helm.release.v1.m00.v2", true)
	res, err := f.Reconcile(t.Context(), f.target(0, "2", "apps"))
	if err == nil || res.Action != ActionUpgraded {
		t.Errorf("%+v, %v", res, err)
	}
	f.want(0, "2", ActionUnchanged, "apps")
	if got := f.revisionsOf(t.Context(), t); !slices.Equal(got, []string{"v1 superseded", "v2 deployed"}) {
		t.Errorf("revisions: %v", got)
	}
}
