package chart

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// No reference of a values.schema.json leaves the chart, a subchart's neither.
func TestSchemaReferences(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"type": "string"}`))
	}))
	defer server.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"const": "a secret of this machine"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for schema, leaves := range map[string]bool{
		`{"properties": {"a": {"$ref": "` + server.URL + `/x"}}}`:                                                               true,
		`{"properties": {"a": {"$ref": "file://` + secret + `"}}}`:                                                              true,
		`{"$id": "` + server.URL + `/y", "properties": {"a": {"$ref": "z"}}}`:                                                   true,
		`{"$schema": "` + server.URL + `/draft"}`:                                                                               true,
		`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicRef": "other#a"}`:                                 true,
		`{"properties": {"a": {"$ref": "other.json#/b"}}}`:                                                                      true,
		`{"$defs": {"b": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/b"}}}`:                                     false,
		`{"$id": "https://example.com/c", "$defs": {"b": {"$id": "d", "type": "integer"}}, "properties": {"a": {"$ref": "d"}}}`: false,
		`{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "urn:x:y"}}}`:                      false,
	} {
		for _, at := range []string{"", "charts/sub/"} {
			files := []File{
				{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
				{Path: "charts/sub/Chart.yaml", Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")},
				{Path: at + "values.schema.json", Data: []byte(schema)},
				{Path: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")},
			}
			o := (*Renderer)(nil).Offline(context.Background(), Input{Name: "web", Namespace: "web", Chart: &Chart{Name: "web", Files: files},
				Values: map[string]any{"a": int64(1), "sub": map[string]any{"a": int64(1)}}}, chartutil.DefaultCapabilities, nil)
			refused := o.Err != nil && strings.Contains(o.Err.Error(), "nothing outside of a schema is read")
			if refused != leaves || !leaves && o.Err != nil || asked.Load() > 0 {
				t.Errorf("%s in %q: %v, %d requests", schema, at, o.Err, asked.Load())
			}
			if o.Err != nil && strings.Contains(o.Err.Error(), "a secret of") {
				t.Errorf("it shows a file: %v", o.Err)
			}
		}
	}
}

// A schema that forbids other keys than its own says nothing of the global values, which
// each chart gets.
func TestSchemaWithoutGlobal(t *testing.T) {
	for _, c := range []struct {
		schema, values string
		fits           bool
	}{
		{`{"properties": {"a": {}}, "additionalProperties": false}`, "a", true},
		{`{"properties": {"a": {}}, "additionalProperties": false}`, "b", false},
		{`{"properties": {"a": {}, "global": {"maxProperties": 0}}, "additionalProperties": false}`, "a", false},
		{`{"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}`, "a", false},
		{`{"properties": {"a": {}}}`, "b", true},
	} {
		o := (*Renderer)(nil).Offline(context.Background(), Input{Name: "web", Namespace: "web", Chart: &Chart{Name: "web", Files: []File{
			{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
			{Path: "values.schema.json", Data: []byte(c.schema)},
			{Path: "templates/a.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {zone: '{{ .Values.global.zone }}'}\n")},
		}}, Values: map[string]any{c.values: int64(1), "global": map[string]any{"zone": "north"}}}, chartutil.DefaultCapabilities, nil)
		if (o.Err == nil) != c.fits {
			t.Errorf("%s with %s: %v", c.schema, c.values, o.Err)
		}
		if o.Err == nil && !strings.Contains(o.Files["web/templates/a.yaml"], "north") {
			t.Errorf("the chart does not see the global values: %v", o.Files)
		}
	}
}
