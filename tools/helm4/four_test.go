package helm4

import (
	"encoding/json"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	status "helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// render4 is render3 with Helm 4.
func render4(files []file, values map[string]any) (out rendered) {
	out = rendered{}
	defer func() {
		if p := recover(); p != nil {
			out["error"] = fmt.Sprint(p)
		}
	}()
	var buffered []*archive.BufferedFile
	for _, f := range files {
		buffered = append(buffered, &archive.BufferedFile{Name: f.name, Data: f.data})
	}
	ch, err := loader.LoadFiles(buffered)
	if err == nil {
		err = of4(ch, values, out)
	}
	if err != nil {
		out["error"] = err.Error()
	}
	return out
}

func of4(ch *chart.Chart, values map[string]any, out rendered) error {
	if values == nil {
		values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(ch, values); err != nil {
		return err
	}
	for _, crd := range ch.CRDObjects() {
		out["crd "+crd.Filename] = string(crd.File.Data)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = common.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	top, err := util.ToRenderValues(ch, values, common.ReleaseOptions{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}, caps)
	if err != nil {
		return err
	}
	out["values"] = asJSON(top["Values"])
	made, err := engine.Render(ch, top)
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
	out["record of Helm 4"] = asJSON(&release.Release{
		Name: "web", Namespace: "shop", Version: 1, Chart: ch, Config: values, Hooks: hooks, Manifest: "a: b\n", Labels: map[string]string{"a": "b"},
		Info: &release.Info{FirstDeployed: began, LastDeployed: began, Status: status.StatusDeployed, Description: "done", Notes: "notes"},
	})
	return nil
}

// read4 is a record as Helm 4 reads it.
func read4(record string) string {
	r := &release.Release{}
	if err := json.Unmarshal([]byte(record), r); err != nil {
		return err.Error()
	}
	return asJSON(r)
}
