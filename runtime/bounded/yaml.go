// Package bounded checks texts from outside before a parser that knows no bounds takes
// them.
package bounded

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	k8syaml "sigs.k8s.io/yaml"
)

const (
	// MaxYAML is the most bytes of one YAML text.
	MaxYAML = 4 << 20
	// maxYAMLMarks bounds how many values a text can make, whatever it says, by the
	// characters that begin or end one; see [yamlMarks]. A value takes some hundred
	// bytes of memory for each byte of text.
	maxYAMLMarks = 400_000
	// markBytes is about how much memory such a character makes: a node, and the value made of it.
	markBytes = 250
	// maxYAMLValues is how many values a text may make, aliases followed.
	maxYAMLValues = 400_000
	// maxYAMLBytes is how much text they may hold together.
	maxYAMLBytes = 32 << 20
	// maxYAMLDepth is how deep values may be nested, aliases followed.
	maxYAMLDepth = 1000
)

// YAMLValues is at least how many values a text of YAML holds, aliases aside.
func YAMLValues(text []byte) int { return yamlMarks(text) }

// CheckYAML says why a text must not be given to a YAML parser: "is …", for people. The
// parsers bound neither what a text takes in memory nor, in bytes, what its aliases make:
// a text of 1 MiB that ten thousand aliases name is 10 GiB as soon as it is JSON. A text that
// passes makes at most 400,000 values and 32 MiB of text. Whether it is YAML at all, it
// leaves to the parser.
func CheckYAML(text []byte) error {
	if err := CheckYAMLSize(text); err != nil {
		return err
	}
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil // no aliases
	}
	docs, err := yamlNodes(text)
	if err != nil {
		// The parser that is used later on differs in small things. It has its own
		// bounds for the number of values, and one text alone is as long as it is.
		return checkUnparsed(text)
	}
	for _, doc := range docs {
		c := &yamlCounter{known: map[*yaml.Node]yamlSize{}}
		s := c.size(doc)
		switch {
		case c.loop:
			return errors.New("is endless: an alias stands within what it names")
		case s.values > maxYAMLValues || s.bytes > maxYAMLBytes:
			return fmt.Errorf("is too large: with its aliases it makes more than %d values or %d MiB of text", maxYAMLValues, maxYAMLBytes>>20)
		case s.depth > maxYAMLDepth:
			return fmt.Errorf("is nested deeper than %d levels", maxYAMLDepth)
		}
	}
	return nil
}

// CheckYAMLSize is [CheckYAML] for those who do not follow aliases.
func CheckYAMLSize(text []byte) error {
	if len(text) > MaxYAML {
		return fmt.Errorf("is larger than %d MiB", MaxYAML>>20)
	}
	if yamlMarks(text) > maxYAMLMarks {
		return fmt.Errorf("is too large: it holds more than some %d values; split it", maxYAMLMarks/4)
	}
	return nil
}

// checkUnparsed bounds what aliases can make of a text whose structure is not known: as
// if each named all of it.
func checkUnparsed(text []byte) error {
	if bytes.Count(text, []byte("*"))*len(text) > maxYAMLBytes {
		return errors.New("holds aliases (*) in a form that cannot be checked")
	}
	return nil
}

// YAMLDocuments is [SplitYAML], and each document has passed [CheckYAML].
func YAMLDocuments(text []byte) ([][]byte, error) {
	docs, err := SplitYAML(text)
	for i, doc := range docs {
		if err := CheckYAML(doc); err != nil {
			return nil, fmt.Errorf("document %d %w", i+1, err)
		}
	}
	return docs, err
}

var yamlMarker, yamlContent = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`), regexp.MustCompile(`(?m)^[ \t]*[^\s#%]`)

// SecondDocument returns the line of the marker that begins a second document, which parsers of one document leave out
// in silence; 0 without one. At the beginning of a line a marker is always one.
func SecondDocument(text []byte) int {
	for _, at := range yamlMarker.FindAllIndex(text, 2) {
		if yamlContent.Match(text[:at[0]]) && yamlContent.Match(text[at[0]+3:]) {
			return 1 + bytes.Count(text[:at[0]], []byte("\n"))
		}
	}
	return 0
}

// SplitYAML splits a text at its --- lines and leaves out what is blank.
func SplitYAML(text []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var docs [][]byte
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(doc)) > 0 {
			docs = append(docs, doc)
		}
	}
}

// YAMLToJSON refuses a key that stands twice, but for one that overrides what a merge (<<) has brought.
func YAMLToJSON(text []byte) ([]byte, error) {
	data, err := k8syaml.YAMLToJSONStrict(text)
	if Overrides(text, err) {
		return k8syaml.YAMLToJSON(text)
	}
	return data, err
}

// Overrides says that err, of a strict parser, is about no key that stands twice, but about keys that override what a
// merge (<<) has brought, which it takes for the same.
func Overrides(text []byte, err error) bool {
	if err == nil || !strings.Contains(err.Error(), "already set in map") || !bytes.Contains(text, []byte("<<")) {
		return false
	}
	docs, err := yamlNodes(text)
	for _, doc := range docs {
		err = cmp.Or(err, doc.Decode(new(any)))
	}
	return err == nil
}

// YAMLBytes is about how much memory a parser takes for a text.
func YAMLBytes(text []byte) int { return yamlMarks(text)*markBytes + len(text) }

// YAMLMakes is about how much memory the values of each key of a map take, aliases followed; nil where the text is no
// map that may be parsed.
func YAMLMakes(text []byte) map[string]int {
	if CheckYAMLSize(text) != nil {
		return nil
	}
	docs, err := yamlNodes(text)
	if err != nil || len(docs) == 0 || len(docs[0].Content) == 0 {
		return nil
	}
	out, c := map[string]int{}, &yamlCounter{known: map[*yaml.Node]yamlSize{}}
	for pair := range slices.Chunk(docs[0].Content[0].Content, 2) {
		s := c.size(pair[len(pair)-1])
		if out[pair[0].Value] = s.values*markBytes + s.bytes; c.loop || s.depth > maxYAMLDepth {
			out[pair[0].Value], c.loop = math.MaxInt, false
		}
	}
	return out
}

// yamlMarks counts what can begin a value, weighed by the memory that it takes at most.
// Maps take most; one begins with a brace, or with a colon whose line ends soon.
func yamlMarks(text []byte) int {
	n := 0
	for i, b := range text {
		switch b {
		case '{':
			n += 4
		case '[', ',', '\n':
			n++
		case ':', '-', '?':
			if i+1 == len(text) || text[i+1] <= ' ' || b == ':' && i > 0 && (text[i-1] == '"' || text[i-1] == '\'') {
				n++
			}
		}
	}
	return n
}

// yamlNodes parses all documents of a text.
func yamlNodes(text []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if recover() != nil { // the parser's own mistakes
			docs, err = nil, errors.New("no YAML")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, &doc)
	}
}

// yamlSize is what a node makes, with all that its aliases name.
type yamlSize struct{ values, bytes, depth int }

// yamlCounter counts without making anything: what is named often is counted once.
type yamlCounter struct {
	known map[*yaml.Node]yamlSize // of what aliases name; depth -1 while it is counted
	loop  bool
}

func (c *yamlCounter) size(n *yaml.Node) yamlSize {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	named := n.Anchor != ""
	if named {
		s, seen := c.known[n]
		if c.loop = c.loop || seen && s.depth < 0; seen || c.loop {
			return s
		}
		c.known[n] = yamlSize{depth: -1}
	}
	s := yamlSize{values: 1, bytes: len(n.Value)}
	for _, child := range n.Content {
		below := c.size(child)
		// Numbers that grow by multiplication stay far from overflow.
		s.values = min(s.values+below.values, maxYAMLValues+1)
		s.bytes = min(s.bytes+below.bytes, maxYAMLBytes+1)
		s.depth = max(s.depth, below.depth+1)
	}
	if named {
		c.known[n] = s
	}
	return s
}
