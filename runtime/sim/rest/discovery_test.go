package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discoveryFile lists what the real server serves of Kubernetes itself. To write it:
//
//	go test -tags e2e ./runtime/sim/rest -run TestDiscoveryReal -update
const discoveryFile = "testdata/discovery.txt"

// notSimulated are the resources of Kubernetes that need a kubelet or a scheduler.
var notSimulated = []string{
	"v1 bindings", "v1 namespaces/finalize", "v1 nodes/proxy", "v1 pods/attach", "v1 pods/binding", "v1 pods/ephemeralcontainers", "v1 pods/exec",
	"v1 pods/log", "v1 pods/portforward", "v1 pods/proxy", "v1 pods/resize", "v1 serviceaccounts/token", "v1 services/proxy",
}

// TestDiscoverySimulated holds the table of built-in kinds to the discovery of the real
// server.
func TestDiscoverySimulated(t *testing.T) {
	if *update {
		t.Skip("recording what the real server answers")
	}
	text, err := os.ReadFile(discoveryFile)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	left := slices.Clone(notSimulated)
	for line := range strings.Lines(string(text)) {
		at := slices.IndexFunc(left, func(name string) bool { return strings.HasPrefix(line, name+" ") })
		if at < 0 {
			want = append(want, strings.TrimSpace(line))
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 {
		t.Errorf("the real server does not have %v", left)
	}
	w := simulatedWorld()
	if diff := cmp.Diff(want, discovered(t, w, groupVersions(t, w))); diff != "" {
		t.Errorf("(-real server +simulated)\n%s", diff)
	}
}

// groupVersions are all that a server serves, "v1" first.
func groupVersions(t *testing.T, w parityWorld) []string {
	var groups metav1.APIGroupList
	fetch(t, w, "/apis", &groups)
	out := []string{"v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			out = append(out, v.GroupVersion)
		}
	}
	return out
}

// discovered lists the resources of some groups and versions, and which version of a group
// is preferred.
func discovered(t *testing.T, w parityWorld, versions []string) (lines []string) {
	var groups metav1.APIGroupList
	fetch(t, w, "/apis", &groups)
	for _, g := range groups.Groups {
		if slices.Contains(versions, g.PreferredVersion.GroupVersion) {
			lines = append(lines, "preferred "+g.PreferredVersion.GroupVersion)
		}
	}
	for _, gv := range versions {
		path := "/apis/" + gv
		if gv == "v1" {
			path = "/api/v1"
		}
		var list metav1.APIResourceList
		fetch(t, w, path, &list)
		for _, r := range list.APIResources {
			scope := "cluster"
			if r.Namespaced {
				scope = "namespaced"
			}
			slices.Sort(r.Verbs)
			line := fmt.Sprintf("%s %s %s %s %s", gv, r.Name, r.Kind, scope, strings.Join(r.Verbs, ","))
			if r.Version != "" {
				line += " of " + metav1.GroupVersion{Group: r.Group, Version: r.Version}.String()
			}
			if r.SingularName != "" {
				line += " singular " + r.SingularName
			}
			if len(r.ShortNames) > 0 {
				line += " short " + strings.Join(r.ShortNames, ",")
			}
			if len(r.Categories) > 0 {
				line += " in " + strings.Join(r.Categories, ",")
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func fetch(t *testing.T, w parityWorld, path string, into any) {
	code, _, body := w.do(t, http.MethodGet, path, "", nil)
	if err := json.Unmarshal(body, into); code != http.StatusOK || err != nil {
		t.Fatalf("GET %s: %d %s", path, code, body)
	}
}
