package values

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/effect"
)

// ErrConfigMoved says that a value of the user's config is neither as a run has seen it nor as the run wants it.
var ErrConfigMoved = errors.New("it is another one than the hook has seen; it runs again")

// Configured is a section of the user's config with a change. The section is not changed.
func Configured(section map[string]any, c *effect.ConfigChange) map[string]any {
	var out any
	if c.Remove {
		out = removeIn(section, c.Path)
	} else {
		out = setIn(section, c.Path, normal(c.Value))
	}
	m, _ := out.(map[string]any)
	return m
}

// Stands says whether a section is as a change has it, or may become so: [ErrConfigMoved] says
// that the user has set another value meanwhile.
func Stands(section map[string]any, c *effect.ConfigChange) (bool, error) {
	is, there := lookup(section, c.Path)
	switch {
	case c.Remove && !there, !c.Remove && there && reflect.DeepEqual(normal(is), normal(c.Value)):
		return true, nil
	case !reflect.DeepEqual(normal(is), normal(c.Was)):
		return false, fmt.Errorf("%s in section %s: %w", PathString(c.Path), c.Key, ErrConfigMoved)
	}
	return false, nil
}

// EditConfig makes a change in the text of a section: comments and the order of keys stay, and so does the text as a
// whole where nothing has to be done. It fails with [ErrConfigMoved], and where the text is no YAML map, or the path
// leads through a list, an anchor or something else that is no map.
func EditConfig(text string, c *effect.ConfigChange) (string, error) {
	section, err := parseYAML([]byte(text))
	if err != nil {
		return "", fmt.Errorf("section %s %w", c.Key, err)
	}
	if done, err := Stands(section, c); done || err != nil {
		return text, err
	}
	next, err := editYAML([]byte(text), c)
	if err != nil {
		return "", fmt.Errorf("section %s: %w", c.Key, err)
	}
	// The parser that writes is not the one that reads: they must agree.
	if got, err := parseYAML([]byte(next)); err != nil || !reflect.DeepEqual(normal(got), normal(any(Configured(section, c)))) {
		return "", fmt.Errorf("section %s: %s cannot be written there; write it by hand", c.Key, PathString(c.Path))
	}
	return next, nil
}

func editYAML(text []byte, c *effect.ConfigChange) (next string, err error) {
	defer func() {
		if recover() != nil { // the parser's own mistakes are no reason to stop
			next, err = "", errors.New("its YAML cannot be changed; write it by hand")
		}
	}()
	if err := bounded.CheckYAMLSize(text); err != nil {
		return "", err
	}
	doc := yaml.Node{Kind: yaml.DocumentNode}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return "", errors.New("its YAML cannot be changed; write it by hand")
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}
	}
	if err := editNode(doc.Content[0], c.Path, c); err != nil {
		return "", err
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return "", errors.New("the value cannot be written as YAML")
	}
	return out.String(), enc.Close()
}

// editNode makes the change below a map.
func editNode(node *yaml.Node, path []string, c *effect.ConfigChange) error {
	if node.Kind != yaml.MappingNode || node.Anchor != "" {
		return fmt.Errorf("what holds %s is no plain map; write it by hand", PathString(c.Path))
	}
	at := -1
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == path[0] && node.Content[i].Tag != "!!merge" {
			at = i
		}
	}
	switch {
	case len(path) == 1 && c.Remove && at >= 0:
		node.Content = append(node.Content[:at], node.Content[at+2:]...)
		return nil
	case c.Remove && at < 0:
		return nil
	case len(path) > 1 && at >= 0 && node.Content[at+1].Tag != "!!null":
		return editNode(node.Content[at+1], path[1:], c)
	}
	var value yaml.Node
	if err := value.Encode(nested(path[1:], c.Value)); err != nil {
		return errors.New("the value cannot be written as YAML")
	}
	if at >= 0 {
		value.LineComment, value.HeadComment, value.FootComment = node.Content[at+1].LineComment, node.Content[at+1].HeadComment, node.Content[at+1].FootComment
		node.Content[at+1] = &value
		return nil
	}
	var key yaml.Node
	if err := key.Encode(path[0]); err != nil {
		return errors.New("the key cannot be written as YAML")
	}
	node.Content = append(node.Content, &key, &value)
	return nil
}

// MergePatch is the JSON merge patch that makes a map into another one.
func MergePatch(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for key := range from {
		if _, stays := to[key]; !stays {
			out[key] = nil
		}
	}
	for key, v := range to {
		was, there := from[key]
		a, wasMap := was.(map[string]any)
		b, isMap := v.(map[string]any)
		switch {
		case there && reflect.DeepEqual(normal(was), normal(v)):
		case wasMap && isMap:
			out[key] = MergePatch(a, b)
		case isMap: // a merge patch leaves nulls out of what is new
			out[key] = maps.Clone(b)
		default:
			out[key] = v
		}
	}
	return out
}
