package tree

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestHelmIgnore(t *testing.T) {
	files := fstest.MapFS{
		"web/module.star":                 {Data: []byte("module()\n")},
		"web/Chart.yaml":                  {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"web/.helmignore":                 {Data: []byte("# no drafts\n*.bak\ndrafts/\n/notes.md\ntemplates/old-*.yaml\n")},
		"web/notes.md":                    {},
		"web/files/notes.md":              {},
		"web/drafts/a.yaml":               {},
		"web/templates/a.yaml":            {},
		"web/templates/a.yaml.bak":        {},
		"web/templates/old-b.yaml":        {},
		"web/templates/deeper/old-c.yaml": {},
		"web/charts/sub/Chart.yaml":       {Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")},
		"web/charts/sub/templates/c.bak":  {},
		"web/charts/sub/templates/c.yaml": {},
		"web/charts/sub/drafts/d.yaml":    {},
		"web/charts/sub/.helmignore":      {Data: []byte("*.yaml\n")}, // Helm reads the outer one only
		"web/templates/_helpers.tpl":      {},
	}
	tr, err := Read(files, Options{})
	if err != nil || tr.Modules[0].Err != nil {
		t.Fatal(err, tr.Modules[0].Err)
	}
	var got []string
	for _, f := range tr.Modules[0].Chart.Files {
		got = append(got, f.Path)
	}
	want := ".helmignore Chart.yaml charts/sub/.helmignore charts/sub/Chart.yaml charts/sub/templates/c.yaml files/notes.md templates/_helpers.tpl templates/a.yaml templates/deeper/old-c.yaml"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	files["web/.helmignore"].Data = []byte("a/**\n")
	if tr, err = Read(files, Options{}); err != nil || tr.Modules[0].Err == nil || !strings.Contains(tr.Modules[0].Err.Error(), "web/.helmignore: double-star") {
		t.Errorf("got %v, %v", err, tr.Modules[0].Err)
	}
}
