package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/message"
)

// sections are the parts of the values.yaml of a module.
type sections struct {
	section []byte // of the module, without its key; nil without one
	enabled *bool
	besides map[string]any // all else, which only the chart sees
	list    bool           // the section was a list
}

// listKey is the key under which a section that was a list has it.
const listKey = "items"

// listNote is said of such a section.
const listNote = "the section %s is a list: it stands under " + listKey + ": now, and chart_values gives it to the chart as before; in the ConfigMap write " + listKey + ": above it, too"

// listed puts a list under its key.
func listed(list *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: listKey}, list}}
}

// listSections are the keys of a values.yaml of the tree that hold lists.
func listSections(data []byte) map[string]bool {
	out := map[string]bool{}
	parsed, err := tree.ParseValues("values.yaml", data)
	if err != nil {
		return out
	}
	for key, v := range parsed {
		_, out[key] = v.([]any)
	}
	return out
}

// moduleValues takes the values.yaml of a module apart. Comments of the section stay.
func moduleValues(n *notes, data []byte, key string) (v sections) {
	parsed, err := tree.ParseValues(n.path, data)
	if err != nil {
		n.add(Left, "%s", broken(n.path, err))
		return v
	}
	doc, err := parseNode(data)
	if err != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return v // nothing but comments
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i].Value, root.Content[i+1]
		switch {
		case name == key && (value.Kind == yaml.MappingNode || value.Kind == yaml.SequenceNode):
			if v.list = value.Kind == yaml.SequenceNode; v.list {
				n.add(Changed, listNote, key)
				value = listed(value)
			}
			printed, err := printNode(n.path, value)
			if err != nil {
				n.add(Left, "the section %s: %s", key, message.Line(err.Error()))
				continue
			}
			v.section = printed
			n.add(Done, "the section %s is all of the new file: its key is taken off", key)
		case name == key && parsed[name] == nil: // empty
		case name == key:
			n.add(Left, "the section %s is no map", key)
		case name == key+"Enabled":
			on, is := parsed[name].(bool)
			if !is {
				n.add(Left, "%s is neither true nor false", name)
				continue
			}
			v.enabled = &on
			n.add(Done, "%s is module(enabled = …)", name)
		case name == "global":
			n.add(Left, "global: move it to values.yaml of the tree, under the values there")
		default:
			if v.besides == nil {
				v.besides = map[string]any{}
			}
			v.besides[name] = parsed[name]
			n.add(Changed, "%s stands beside the section of the module, for the chart alone: chart_values adds it", name)
		}
	}
	return v
}

// broken says where a file is broken.
func broken(file string, err error) string {
	text, is := strings.CutPrefix(message.Line(err.Error()), file+":")
	if is && text != "" && text[0] >= '0' && text[0] <= '9' {
		text = "line " + text
	}
	return "it is broken: " + strings.TrimSpace(text)
}

// parseNode parses YAML with its comments.
func parseNode(data []byte) (doc *yaml.Node, err error) {
	defer func() {
		if recover() != nil { // the parser's own mistakes
			err = errors.New("this is no YAML")
		}
	}()
	doc = &yaml.Node{}
	return doc, yaml.Unmarshal(data, doc)
}

// printNode prints a section. One that names parts outside of it cannot stand alone.
func printNode(file string, section *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(section); err != nil {
		return nil, err
	}
	_, err := tree.ParseValues(file, b.Bytes())
	return b.Bytes(), err
}

// treeValues returns the values of the whole tree without the sections of modules, whose keys
// are given, that are none for Starling; nil for a broken file.
func treeValues(n *notes, data []byte, keys map[string]bool) []byte {
	parsed, err := tree.ParseValues(n.path, data)
	if err != nil {
		n.add(Left, "%s", broken(n.path, err))
		return nil
	}
	var wrong, lists []string
	for _, key := range slices.Sorted(maps.Keys(parsed)) {
		of, isSwitch := strings.CutSuffix(key, "Enabled")
		_, isMap := parsed[key].(map[string]any)
		_, isList := parsed[key].([]any)
		_, isBool := parsed[key].(bool)
		switch {
		case parsed[key] == nil:
		case keys[key] && isList:
			n.add(Changed, listNote, key)
			lists = append(lists, key)
		case (key == "global" || keys[key]) && !isMap:
			n.add(Left, "%s is no map; a section is one", key)
			wrong = append(wrong, key)
		case isSwitch && keys[of] && !keys[key] && !isBool:
			n.add(Left, "%s is neither true nor false", key)
			wrong = append(wrong, key)
		}
	}
	if len(wrong)+len(lists) == 0 {
		n.add(Done, "values of the tree, as they are")
		return data
	}
	doc, err := parseNode(data)
	if err != nil {
		return nil
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); {
		if slices.Contains(wrong, root.Content[i].Value) {
			root.Content = slices.Delete(root.Content, i, i+2)
			continue
		}
		if value := root.Content[i+1]; slices.Contains(lists, root.Content[i].Value) {
			root.Content[i+1] = listed(value)
		}
		i += 2
	}
	printed, err := printNode(n.path, root)
	if err != nil {
		n.add(Left, "without these it does not stand: %s", message.Line(err.Error()))
		return nil
	}
	return printed
}

var schemaNames = []string{"config-values.yaml", "values.yaml"} // the second may extend the first

// schemas returns those of openapi/ that Starling takes, and files that they refer to, by their names.
func schemas(files map[string]oldFile, note func(p string) *notes) map[string][]byte {
	out := map[string][]byte{}
	for _, name := range schemaNames {
		f, is := files["openapi/"+name]
		if !is {
			continue
		}
		n, beside := note(f.path), map[string]oldFile{}
		schema, err := values.ParseSchema("openapi/"+name, f.data, func(other string) ([]byte, error) {
			other = path.Base(other)
			if data, is := out[other]; is {
				return data, nil
			}
			if f, is := files["openapi/"+other]; is && !slices.Contains(schemaNames, other) {
				beside[other] = f
				return f.data, nil
			}
			return nil, fmt.Errorf("%s was not brought over", other)
		})
		if err != nil {
			text := strings.TrimPrefix(message.Line(err.Error()), "openapi/"+name+": ")
			if wrong, ok := errors.AsType[*values.SchemaError](err); ok && wrong.Mistakes[0].File == wrong.File && wrong.Mistakes[0].Line > 0 {
				text = fmt.Sprintf("line %d: %s", wrong.Mistakes[0].Line, text)
			}
			n.add(Left, "the schema: %s", message.Cut(text, 400))
			continue
		}
		out[name] = f.data
		n.add(Done, "the schema, as it is")
		for other, f := range beside {
			out[other] = f.data
			note(f.path).add(Done, "as it is: a schema refers to it")
		}
		if r := schema.Remarks(); r != nil {
			n.add(Changed, "values are not checked for all of it: %s", message.Cut(message.Line(strings.TrimPrefix(r.Error(), r.File+": ")), 400))
		}
	}
	return out
}
