package helm4

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// render3 is what modules/release does with Helm 3.
func render3(files []file, values map[string]any) (out rendered) {
	out = rendered{}
	defer func() {
		if p := recover(); p != nil {
			out["error"] = fmt.Sprint(p)
		}
	}()
	var buffered []*loader.BufferedFile
	for _, f := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: f.name, Data: f.data})
	}
	ch, err := loader.LoadFiles(buffered)
	if err == nil {
		err = of3(ch, values, out)
	}
	if err != nil {
		out["error"] = err.Error()
	}
	return out
}

func of3(ch *chart.Chart, values map[string]any, out rendered) error {
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependenciesWithMerge(ch, values); err != nil {
		return err
	}
	for _, crd := range ch.CRDObjects() {
		out["crd "+crd.Filename] = string(crd.File.Data)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	top, err := chartutil.ToRenderValues(ch, values, chartutil.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}, caps)
	if err != nil {
		return err
	}
	out["values"] = asJSON(top["Values"])
	made, err := engine.Engine{}.Render(ch, top)
	if err != nil {
		return err
	}
	for name, text := range made {
		out["file "+name] = text
		if isNotes(name) {
			delete(made, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(made, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	order := ""
	for i, h := range hooks {
		out[fmt.Sprintf("hook %03d of %s", i, h.Path)] = h.Manifest
		order += fmt.Sprintln("hook", h.Kind, h.Name, h.Path, h.Weight, h.Events, h.DeletePolicies, h.OutputLogPolicies)
	}
	for i, m := range manifests {
		out[fmt.Sprintf("object %03d of %s", i, m.Name)] = m.Content
		order += m.Head.Kind + " " + m.Name + "\n"
	}
	out["order"] = order
	at := helmtime.Time{Time: began}
	out["record of Helm 3"] = asJSON(&release.Release{
		Name: "web", Namespace: "shop", Version: 1, Chart: ch, Config: values, Hooks: hooks, Manifest: "a: b\n", Labels: map[string]string{"a": "b"},
		Info: &release.Info{FirstDeployed: at, LastDeployed: at, Status: release.StatusDeployed, Description: "done", Notes: "notes"},
	})
	return nil
}

// read3 is a record as Helm 3 reads it.
func read3(record string) string {
	r := &release.Release{}
	if err := json.Unmarshal([]byte(record), r); err != nil {
		return err.Error()
	}
	return asJSON(r)
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
