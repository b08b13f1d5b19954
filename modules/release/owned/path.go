package owned

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Path names a field of an object, and all that is below it. It is plain data.
type Path []Step

// Step is one step of a [Path]: just one of Field, Key and Any is set.
type Step struct {
	// Field is a key of a map.
	Field string `json:"field,omitempty"`
	// Key and Value name the elements of a list whose field Key is Value, as text.
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	// Any is every key of a map and every element of a list.
	Any bool `json:"any,omitempty"`
}

var stepText = regexp.MustCompile(`^(?:\[("(?:[^"\\]|\\.)*")\]|\[(\*)\]|\[([A-Za-z0-9_.-]+)=([^\]]*)\]|\.?([^./\[\]"=\s]+))`)

var plainField = regexp.MustCompile(`^[^./\[\]"=\s]+$`)

// ParsePath reads a path: spec.replicas, metadata.annotations["example.com/x"],
// spec.template.spec.containers[name=web].image, spec.rules[*].host.
func ParsePath(text string) (Path, error) {
	var out Path
	rest := text
	for rest != "" {
		m := stepText.FindStringSubmatch(rest)
		if m == nil || len(out) == 0 && rest[0] == '.' {
			return nil, fmt.Errorf("%q is no path of a field; write spec.replicas, metadata.annotations[\"example.com/x\"] or spec.containers[name=web].image", text)
		}
		step := Step{Field: m[5], Key: m[3], Value: m[4], Any: m[2] != ""}
		if m[1] != "" {
			var err error
			if step.Field, err = strconv.Unquote(m[1]); err != nil || step.Field == "" {
				return nil, fmt.Errorf("%s in the path %q is no text", m[1], text)
			}
		}
		out, rest = append(out, step), rest[len(m[0]):]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the path of a field is empty")
	}
	return out, nil
}

// String writes the path as [ParsePath] reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Any:
			b.WriteString("[*]")
		case s.Key != "":
			fmt.Fprintf(&b, "[%s=%s]", s.Key, s.Value)
		case !plainField.MatchString(s.Field):
			fmt.Fprintf(&b, "[%q]", s.Field)
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Field)
		}
	}
	return b.String()
}

// Ignore leaves a part of a release's objects to others.
type Ignore struct {
	// Kind and Name select objects; "" selects all. Kind is "Service", of any API group, or "Service.GROUP", which
	// is "Service." for Kubernetes' own.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Path is the field that is left to others, nil for the whole object.
	Path Path `json:"path,omitempty"`
}

// ParseIgnore reads what is ignored: a kind, with its API group or without, with a name where one object is meant, a path, or
// both with a space between: "Secret", "Deployment/web", "spec.replicas",
// "Deployment/web spec.template.spec.containers[name=web].image". A kind begins with an upper
// case letter, a path does not.
func ParseIgnore(text string) (Ignore, error) {
	var out Ignore
	objects, path, both := strings.Cut(strings.TrimSpace(text), " ")
	if !both && (objects == "" || objects[0] < 'A' || objects[0] > 'Z') {
		objects, path, both = "", objects, true
	}
	out.Kind, out.Name, _ = strings.Cut(objects, "/")
	if objects != "" && !kindText.MatchString(out.Kind) || strings.HasSuffix(objects, "/") {
		return Ignore{}, fmt.Errorf("%q does not say what is ignored; write \"Kind\", \"Kind/name\", \"path.of.a.field\", or a kind and a path with a space between", text)
	}
	if !both {
		return out, nil
	}
	var err error
	out.Path, err = ParsePath(strings.TrimSpace(path))
	return out, err
}

var kindText = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.([a-z0-9][a-z0-9.-]*)?)?$`)

// String writes what is ignored as [ParseIgnore] reads it.
func (i Ignore) String() string {
	text := i.Kind
	if i.Name != "" {
		text += "/" + i.Name
	}
	if len(i.Path) == 0 {
		return text
	}
	return strings.TrimSpace(text + " " + i.Path.String())
}

// Names says whether what is ignored holds a field of an object; a nil path is the object as a whole.
func (i Ignore) Names(apiVersion, kind, name string, path Path) bool {
	return i.selects(apiVersion, kind, name) && path.within(i.Path)
}

func (i Ignore) selects(apiVersion, kind, name string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	return (i.Kind == "" || i.Kind == kind || i.Kind == kind+"."+group) && (i.Name == "" || i.Name == name)
}

// Ignored returns the paths that are ignored of one object; all: the object as a whole.
func Ignored(list []Ignore, apiVersion, kind, name string) (paths []Path, all bool) {
	for _, i := range list {
		if !i.selects(apiVersion, kind, name) {
			continue
		}
		if len(i.Path) == 0 {
			return nil, true
		}
		paths = append(paths, i.Path)
	}
	return paths, false
}

// covers says whether the path is at, or above it.
func (p Path) covers(at fieldpath.Path) bool {
	if len(at) < len(p) {
		return false
	}
	for i, s := range p {
		if !s.names(at[i]) {
			return false
		}
	}
	return true
}

// within says whether other is the path, or above it.
func (p Path) within(other Path) bool {
	if len(other) > len(p) {
		return false
	}
	for i, s := range other {
		if !s.Any && s != p[i] {
			return false
		}
	}
	return true
}

// selects says whether the step goes to an element of a list.
func (s Step) selects(e any) bool {
	m, _ := e.(map[string]any)
	v, ok := m[s.Key]
	return s.Any || s.Key != "" && ok && textOf(v) == s.Value
}

// names says whether the step goes to an element of a path of the API server.
func (s Step) names(e fieldpath.PathElement) bool {
	switch {
	case s.Any:
		return true
	case s.Key == "":
		return e.FieldName != nil && *e.FieldName == s.Field
	}
	return e.Key != nil && slices.ContainsFunc(*e.Key, func(f value.Field) bool {
		return f.Name == s.Key && textOf(f.Value.Unstructured()) == s.Value
	})
}

func textOf(v any) string { return fmt.Sprint(v) }

// valueAt is the value at a path of the API server; nil: there is none.
func valueAt(v any, path fieldpath.Path) any {
	for _, step := range path {
		switch list, _ := v.([]any); {
		case step.FieldName != nil:
			m, _ := v.(map[string]any)
			v = m[*step.FieldName]
		case step.Index != nil && *step.Index >= 0 && *step.Index < len(list):
			v = list[*step.Index]
		default:
			i := slices.IndexFunc(list, func(e any) bool { return isElement(step, e) })
			if i < 0 {
				return nil
			}
			v = list[i]
		}
	}
	return v
}

// isElement says whether a step selects an element of a list. A key that the element does not give has a default.
func isElement(step fieldpath.PathElement, e any) bool {
	if step.Value != nil {
		return textOf((*step.Value).Unstructured()) == textOf(e)
	}
	m, is := e.(map[string]any)
	return is && step.Key != nil && !slices.ContainsFunc(*step.Key, func(key value.Field) bool {
		v, given := m[key.Name]
		return given && textOf(v) != textOf(key.Value.Unstructured())
	})
}
