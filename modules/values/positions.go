package values

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/runtime/bounded"
)

const (
	// maxMerges bounds how often `<<` is followed for one path.
	maxMerges = 1000
)

// positions finds the lines of keys in one YAML text. Nil knows none.
type positions struct{ root *yaml.Node }

// newPositions reads a text that was read as values before; one that this parser does
// not understand has no lines.
func newPositions(data []byte) (p *positions) {
	defer func() {
		if recover() != nil { // the parser's own mistakes are no reason to stop
			p = nil
		}
	}()
	if len(data) == 0 || bounded.CheckYAMLSize(data) != nil {
		return nil
	}
	var doc yaml.Node
	if yaml.NewDecoder(bytes.NewReader(data)).Decode(&doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	return &positions{root: doc.Content[0]}
}

// line returns the line, from 1, of the key that path ends in; 0 when it is not there.
func (p *positions) line(path []string) int {
	if line, whole := p.follow(path); whole {
		return line
	}
	return 0
}

// nearest is line, or that of the closest key above that is there.
func (p *positions) nearest(path []string) int {
	line, _ := p.follow(path)
	return line
}

// follow returns the line of the last key of path that is there, and whether all of them are.
func (p *positions) follow(path []string) (line int, whole bool) {
	if p == nil {
		return 0, false
	}
	node, merges := p.root, maxMerges
	for _, key := range path {
		next, at := child(node, key, &merges)
		if next == nil {
			return line, false
		}
		node, line = next, at
	}
	return line, true
}

// child returns what is below node under key, and the line of the key. merges is
// how often it may still look into what is merged.
func child(node *yaml.Node, key string, merges *int) (*yaml.Node, int) {
	if node = target(node); node == nil || node.Kind != yaml.MappingNode {
		return nil, 0
	}
	var below []*yaml.Node // what << merges in, the first wins
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := target(node.Content[i]), node.Content[i+1]
		switch {
		case k == nil || k.Kind != yaml.ScalarNode:
		case k.Tag == "!!merge":
			if list := target(v); list != nil && list.Kind == yaml.SequenceNode {
				below = slices.Concat(below, list.Content)
			} else {
				below = append(below, v)
			}
		case k.Value == key || k.Style == 0 && boolKey(k.Value) == key:
			return v, k.Line
		}
	}
	for _, b := range below {
		if *merges--; *merges < 0 {
			break
		}
		if v, line := child(b, key, merges); v != nil {
			return v, line
		}
	}
	return nil, 0
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// boolKey is the key that values have for a bare one that older YAML takes for true or
// false; "" for all others.
func boolKey(text string) string {
	switch strings.ToLower(text) {
	case "y", "yes", "on", "true":
		return "true"
	case "n", "no", "off", "false":
		return "false"
	}
	return ""
}
