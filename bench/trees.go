package main

import (
	"embed"
	"strings"
)

//go:embed trees
var trees embed.FS

// text returns a file of trees/ in which words are replaced, each by the one after it.
func text(file string, replaced ...string) string {
	data, err := trees.ReadFile("trees/" + file)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return strings.NewReplacer(replaced...).Replace(string(data))
}

// plainModule is a module that needs no right.
const plainModule = "module(enabled = True)\n"

// moduleWith is a module with more arguments.
func moduleWith(args ...string) string {
	return "module(enabled = True, " + strings.Join(args, ", ") + ")\n"
}

// mayApply lets a module apply ConfigMaps in a namespace, and more if verbs say so.
func mayApply(namespace string, verbs ...string) string {
	all := strings.Join(append([]string{"apply"}, verbs...), `", "`)
	return `grants = [grant("v1", "ConfigMap", verbs = ["` + all + `"], namespaces = ["` + namespace + `"])]`
}

func inNamespace(name string) string { return `namespace = "` + name + `"` }

// addChart adds the files of a chart to a tree.
func addChart(tree map[string]string, module string, files map[string]string) {
	for path, text := range files {
		tree[module+"/chart/"+path] = text
	}
}

// chartFiles is a chart of four objects, as people write them.
func chartFiles(name string) map[string]string {
	files := map[string]string{}
	for _, path := range []string{
		"Chart.yaml", "values.yaml", "templates/configmap.yaml", "templates/serviceaccount.yaml", "templates/service.yaml",
		"templates/deployment.yaml",
	} {
		files[path] = text("chart/"+path, "MODULE", name)
	}
	return files
}

// smallChart is a chart of one template.
func smallChart(name, values, template string) map[string]string {
	return map[string]string{
		"Chart.yaml":              text("chart/Chart.yaml", "MODULE", name),
		"values.yaml":             values,
		"templates/template.yaml": template,
	}
}
