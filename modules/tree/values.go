package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

// readValues reads values.yaml at the root and checks its top level.
func (t *Tree) readValues(s *snapshot, o Options) error {
	for _, b := range s.broken {
		if b.path == "values.yaml" {
			return fmt.Errorf("modules folder %s: values.yaml: %w", o.Name, b.err)
		}
	}
	f := s.file("values.yaml")
	if f == nil {
		if s.has("values.yml") {
			t.problem("values.yml", "", "not used: did you mean values.yaml?")
		}
		return nil
	}
	values, left, err := parseSections(f.Path, f.Data)
	if err != nil {
		return fmt.Errorf("modules folder %s: %w", o.Name, err)
	}
	t.Values, t.ValuesFile = values, f.Path

	known := []string{"global"}
	if t.Global != nil && left["global"] != nil {
		t.Global.Err = errors.Join(t.Global.Err, left["global"])
	}
	if v, ok := values["global"]; ok && v != nil {
		if _, isMap := v.(map[string]any); !isMap {
			return fmt.Errorf("modules folder %s: %s: global must be a map, not %s", o.Name, f.Path, kind(v))
		}
	}
	for _, m := range t.Modules {
		known = append(known, m.Key, m.Key+"Enabled")
		for _, key := range []string{"global", m.Key, m.Key + "Enabled"} { // all modules have the global values
			if left[key] != nil {
				m.Err = errors.Join(m.Err, left[key])
			}
		}
		if m.Err != nil {
			continue
		}
		if v := values[m.Key]; v != nil {
			if _, isMap := v.(map[string]any); !isMap {
				m.fail(f.Path, fmt.Errorf("%s must be a map, not %s", m.Key, kind(v)))
			}
		}
		if v := values[m.Key+"Enabled"]; v != nil {
			if _, isBool := v.(bool); !isBool {
				m.fail(f.Path, fmt.Errorf("%sEnabled must be true or false, not %s; write %sEnabled: true", m.Key, kind(v), m.Key))
			}
		}
	}
	for key := range left {
		if !slices.Contains(known, key) {
			t.problem(f.Path, "", "%s belongs to no module, and is too large: it is left out", strconv.Quote(key))
		}
	}
	for key := range values {
		if slices.Contains(known, key) {
			continue
		}
		hint := ""
		if n := message.Nearest(key, known); n != "" {
			hint = "; did you mean " + n + "?"
		}
		t.problem(f.Path, "", "%s belongs to no module%s", strconv.Quote(key), hint)
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int { return strings.Compare(a.Msg, b.Msg) })
	return nil
}

// maxLeft is how many sections of a values.yaml that is too large are left out.
const maxLeft = 16

var sectionLine = regexp.MustCompile(`(?m)^([A-Za-z][A-Za-z0-9]*):(?:[ \t\r]|$)`)

// parseSections is [ParseValues] for the values.yaml of a tree. All modules share its limits: where it is too large,
// the sections that make most are left out until the rest fits, and what is left out is an error of its module.
func parseSections(file string, data []byte) (values map[string]any, left map[string]error, err error) {
	values, err = ParseValues(file, data)
	for rest, why := data, err; why != nil && len(left) < maxLeft; {
		if bounded.CheckYAML(rest) == nil && !strings.Contains(why.Error(), "excessive aliasing") {
			break
		}
		key, begin, end := largest(rest)
		if key == "" || left[key] != nil {
			break
		}
		if left == nil {
			left = map[string]error{}
		}
		left[key] = fmt.Errorf("%s:%d: section %s: %w", file, 1+bytes.Count(rest[:begin], []byte("\n")), key, why)
		// Empty lines: places stay as they are.
		rest = slices.Concat(rest[:begin], bytes.Repeat([]byte("\n"), bytes.Count(rest[begin:end], []byte("\n"))), rest[end:])
		var fits map[string]any
		if fits, why = ParseValues(file, rest); why == nil {
			return fits, left, nil
		}
	}
	return values, nil, err
}

// largest is the section that makes most, as bytes of the text; "" where none is found.
func largest(data []byte) (key string, begin, end int) {
	made, most := bounded.YAMLMakes(data), -1
	at := sectionLine.FindAllSubmatchIndex(data, -1)
	for i, a := range at {
		until := len(data)
		if i+1 < len(at) {
			until = at[i+1][0]
		}
		name := string(data[a[2]:a[3]])
		if n := max(made[name], bounded.YAMLBytes(data[a[0]:until])); n > most {
			key, begin, end, most = name, a[0], until, n
		}
	}
	return key, begin, end
}

// ParseValues reads a values file: one YAML document, a map, no key twice. An
// empty file is an empty map. The result is plain data: integers are int64, other
// numbers float64. Errors are one line and begin with the file's path.
func ParseValues(file string, data []byte) (map[string]any, error) {
	return parseMap(file, data, "values")
}

// parseMap is ParseValues for any file; what names its content in errors.
func parseMap(file string, data []byte, what string) (m map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser's own mistakes are no reason to stop
			m, err = nil, fmt.Errorf("%s: this is no YAML", file)
		}
	}()
	if line := bounded.SecondDocument(data); line > 0 {
		return nil, fmt.Errorf("%s:%d: a second document begins here: %s are one", file, line, what)
	}
	if err := bounded.CheckYAML(data); err != nil {
		return nil, fmt.Errorf("%s %w", file, err)
	}
	raw, err := bounded.YAMLToJSON(data)
	if err != nil {
		return nil, yamlError(file, data, err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if v == nil {
		return map[string]any{}, nil
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %s must be a map, not %s", file, what, kind(v))
	}
	if err := numbers(root, ""); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// yamlError puts the line that the parser names where people look for it.
func yamlError(file string, data []byte, err error) error {
	msg := message.Line(message.YAML(err.Error(), data))
	for _, noise := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors: "} {
		msg = strings.Replace(msg, noise, "", 1)
	}
	if at := yamlLine.FindStringSubmatchIndex(msg); at != nil {
		line, _ := strconv.Atoi(msg[at[2]:at[3]])
		return fmt.Errorf("%s:%s: %s", file, msg[at[2]:at[3]], withYAMLHint(msg[:at[0]]+msg[at[1]:], data, line))
	}
	if strings.Contains(msg, "mapping values are not allowed") { // the parser names no line where it is the first
		file += ":1"
	}
	return fmt.Errorf("%s: %s", file, withYAMLHint(msg, data, 1))
}

// numbers turns the numbers in v, a map or list at path, into int64 or float64.
func numbers(v any, path string) error {
	set := func(key string, x any, put func(any)) error {
		switch x := x.(type) {
		case json.Number:
			n, err := number(x)
			if err != nil {
				return fmt.Errorf("%s: %w", strings.TrimPrefix(path+key, "."), err)
			}
			put(n)
		case map[string]any, []any:
			return numbers(x, path+key)
		}
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		// In order: an error stays the same while its cause does.
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := set("."+k, v[k], func(n any) { v[k] = n }); err != nil {
				return err
			}
		}
	case []any:
		for i, x := range v {
			if err := set(fmt.Sprintf("[%d]", i), x, func(n any) { v[i] = n }); err != nil {
				return err
			}
		}
	}
	return nil
}

func number(n json.Number) (any, error) {
	if !strings.ContainsAny(n.String(), ".eE") {
		i, err := n.Int64()
		if err != nil {
			return nil, errors.New("the integer has more than 64 bits: put it in quotes")
		}
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errors.New("the number is too large")
	}
	return f, nil
}

// kind names the type of plain data for people.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case bool:
		return "true or false"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "a number"
}
