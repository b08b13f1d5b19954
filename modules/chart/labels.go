package chart

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
	plain "github.com/starling-operator/starling/runtime/object"
)

// Label returns files of objects with labels on each object; those of a key that it has itself stay. A file that
// cannot be read stays as it is: the next one to read it says what is wrong with it.
func Label(files []File, labels map[string]string) []File {
	if len(labels) == 0 {
		return files
	}
	out := slices.Clone(files)
	for i, f := range files {
		if text, err := labelled(f.Data, labels); err == nil {
			out[i].Data = text
		}
	}
	return out
}

// LabelAll is Label for rendered files by path.
func LabelAll(files map[string]string, labels map[string]string) (map[string]string, error) {
	if len(labels) == 0 {
		return files, nil
	}
	out := maps.Clone(files)
	for name, text := range files {
		data, err := labelled([]byte(text), labels)
		if err != nil {
			return nil, err
		}
		out[name] = string(data)
	}
	return out, nil
}

func labelled(text []byte, labels map[string]string) ([]byte, error) {
	docs, err := bounded.YAMLDocuments(text)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, doc := range docs {
		data, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return nil, err
		}
		if string(data) == "null" { // comments only
			continue
		}
		var obj map[string]any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&obj); err != nil {
			return nil, err
		}
		objects, _ := plain.Objects(obj) // with their own metadata
		for _, one := range objects {
			addLabels(one, labels)
		}
		if data, err = json.Marshal(obj); err != nil {
			return nil, err
		}
		if data, err = yaml.JSONToYAML(data); err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return bytes.Join(out, []byte("---\n")), nil
}

// addLabels puts labels on an object that has metadata.
func addLabels(obj map[string]any, labels map[string]string) {
	metadata, isMap := obj["metadata"].(map[string]any)
	if !isMap {
		return
	}
	own, isMap := metadata["labels"].(map[string]any)
	if metadata["labels"] != nil && !isMap {
		return
	}
	if own == nil {
		own = map[string]any{}
		metadata["labels"] = own
	}
	for key, text := range labels {
		if _, there := own[key]; !there {
			own[key] = text
		}
	}
}
