package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// reportsAge is for how long the answer about a kind holds that is not in the schemas, or has no such status.
const reportsAge = time.Minute

// reports is what schemas say of the kinds of one group-version.
type reports struct {
	kinds map[string]bool
	asked time.Time
}

// Reports says whether the status of a kind that somebody has added to Kubernetes has conditions, or the generation
// that its controller has seen. It needs no rights: everybody may read schemas. An unknown kind has
// neither.
func (c *Client) Reports(ctx context.Context, apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || !strings.Contains(gv.Group, ".") || scheme.Scheme.IsGroupRegistered(gv.Group) {
		return false
	}
	g := c.group(apiVersion)
	g.asking.Lock()
	defer g.asking.Unlock()
	if g.reports.kinds[kind] || time.Since(g.reports.asked) < reportsAge {
		return g.reports.kinds[kind]
	}
	g.reports = reports{asked: time.Now()}
	if body, err := c.do(ctx, c.rest.Verb(http.MethodGet).AbsPath("/openapi/v3", strings.Join(apiPath(gv), "/"))); err == nil {
		g.reports.kinds = reporting(body, gv)
	}
	return g.reports.kinds[kind]
}

// reporting are the kinds of a document of schemas that say how they are.
func reporting(body []byte, gv schema.GroupVersion) map[string]bool {
	type properties map[string]struct {
		Properties map[string]struct{} `json:"properties"`
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Kinds      []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
				Properties properties                `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
		Paths map[string]struct {
			Patch struct {
				Kind schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			} `json:"patch"`
		} `json:"paths"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil
	}
	written := map[string]bool{} // kinds with a subresource status
	for path, p := range doc.Paths {
		written[p.Patch.Kind.Kind] = written[p.Patch.Kind.Kind] || strings.HasSuffix(path, "/status")
	}
	out := map[string]bool{}
	for _, s := range doc.Components.Schemas {
		_, conditions := s.Properties["status"].Properties["conditions"]
		_, observed := s.Properties["status"].Properties["observedGeneration"]
		for _, k := range s.Kinds {
			if k.Group == gv.Group && k.Version == gv.Version && (conditions || observed) && written[k.Kind] {
				out[k.Kind] = true
			}
		}
	}
	return out
}
