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
		"web/.helmignore":                 {Data: []byte("# no drafts\n*.bak\ndrafts/\n/notes.md\ntemplates/old-*.yaml\ncrds/more.yaml\n")},
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
		"web/crds/a.yaml":                 {},
		"web/crds/more.yaml":              {},
		"web/crds/drafts/b.yaml":          {},
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
	crds := func() (paths string) {
		tr, err := Read(files, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range tr.Modules[0].CRDs {
			paths += " " + f.Path
		}
		return paths
	}
	if got := crds(); got != " web/crds/a.yaml" {
		t.Errorf("the CRDs are%s", got)
	}
	files["web/.helmignore"].Data = []byte("crds/\n")
	if got := crds(); got != "" {
		t.Errorf("the CRDs of an ignored folder are%s", got)
	}
	// The crds/ of a module whose chart is in a folder is no part of the chart.
	files["web/chart/.helmignore"] = &fstest.MapFile{Data: []byte("crds/k*\n")}
	files["web/chart/crds/c.yaml"], files["web/chart/crds/k.yaml"] = &fstest.MapFile{}, &fstest.MapFile{}
	files["web/chart/Chart.yaml"] = files["web/Chart.yaml"]
	for name := range files {
		if strings.HasPrefix(name, "web/templates/") || name == "web/Chart.yaml" {
			delete(files, name)
		}
	}
	if got := crds(); got != " web/crds/a.yaml web/crds/drafts/b.yaml web/crds/more.yaml web/chart/crds/c.yaml" {
		t.Errorf("the CRDs are%s", got)
	}
	delete(files, "web/chart/Chart.yaml")
	files["web/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}
	files["web/.helmignore"].Data = []byte("a/**\n")
	if tr, err = Read(files, Options{}); err != nil || tr.Modules[0].Err == nil || !strings.Contains(tr.Modules[0].Err.Error(), "web/.helmignore: double-star") {
		t.Errorf("got %v, %v", err, tr.Modules[0].Err)
	}
}
