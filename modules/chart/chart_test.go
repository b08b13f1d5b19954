package chart

import "fmt"

// chartOf is a chart of templates/0.yaml, templates/1.yaml, …
func chartOf(name string, templates ...string) *Chart {
	files := []File{{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n")}}
	for i, text := range templates {
		files = append(files, File{Path: fmt.Sprintf("templates/%d.yaml", i), Data: []byte(text)})
	}
	return &Chart{Name: name, Files: files, Digest: DigestOf(files)}
}

// with adds a file to a chart.
func with(c *Chart, path, text string) *Chart {
	files := append(append([]File{}, c.Files...), File{Path: path, Data: []byte(text)})
	return &Chart{Name: c.Name, Files: files, Digest: DigestOf(files)}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
