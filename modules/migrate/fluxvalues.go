package migrate

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

// valuesHook is the hook that reads what valuesFrom names.
const valuesHook = "hooks/values_from.star"

// maxReferences is how many objects valuesFrom may name: each has its own watch.
const maxReferences = 50

// values brings the values of a HelmRelease over: values.yaml, and a hook for those of objects.
func (f *flux) values(m *module, n *notes, o *fluxObject, spec *yaml.Node, remote bool) {
	file, own := m.dir+"/values.yaml", []byte("{}\n")
	var plain map[string]any
	if at := field(spec, "values"); at != nil {
		printed, err := parsed(file, at)
		if err == nil {
			plain, err = tree.ParseValues(file, printed)
		}
		if err != nil {
			m.todo(n, at, "values.yaml: spec.values: %s", broken(file, err))
			m.lacks("its values")
			return
		}
		own = printed
	}
	same := `yaml.decode(module.file("values.yaml")) or {}`
	if remote {
		m.write("values.yaml", f.file, own)
	} else { // values.yaml beside a chart is that of the chart
		f.sections[tree.Key(m.name)] = plain
		same = starlark(plain)
	}
	refs := field(spec, "valuesFrom")
	if refs == nil || len(refs.Content) == 0 {
		return
	}
	if len(refs.Content) > maxReferences {
		m.todo(n, refs, "spec.valuesFrom names more than %d objects", maxReferences)
		m.lacks("values of other objects")
		return
	}
	var rows, watches, grants []string
	for i, ref := range refs.Content {
		r, err := f.reference(followed(ref), o, i)
		if err != nil {
			m.todo(n, ref, "spec.valuesFrom: %v", err)
			m.lacks("values of other objects")
			continue
		}
		rows, watches, grants = append(rows, r.row), append(watches, r.watch), append(grants, r.grants...)
	}
	if len(rows) == 0 {
		return
	}
	n.add(Changed, "line %d: spec.valuesFrom is %s: what it sets counts in the place of the user's ConfigMap, too; the objects that it names stay where they are, and belong to those who write them now", refs.Line, valuesHook)
	if len(grants) > 0 {
		m.say("grants = [%s],", strings.Join(grants, ", "))
	}
	m.write(valuesHook, f.file, fmt.Appendf(nil, valuesFrom, strings.Join(rows, "\n    "), same, strings.Join(watches, ",\n        ")))
}

// valuesFrom is the text of the hook.
const valuesFrom = `# Values that stand in other objects, in the order of valuesFrom; those of the HelmRelease itself count above them.

FROM = [
    # The watch, what stands before an error, whether it may be missing, and the path of one value.
    %s
]

OWN = %s

def lay(more):
    for key, value in more.items():
        if type(value) == "dict":
            values.merge([key], value)
        else:
            values.set([key], value)

def one(text):  # as Flux reads it: a truth value, a whole number, or a text as it is, without the quotes around it
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.match("^(0|-?[1-9][0-9]{0,17})$", text):
        return int(text)
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] else text

def values_from(ctx):
    for watch, what, optional, path in FROM:
        texts = ctx.snapshots[watch]
        if not texts and not optional:
            fail(what + " is not there")
        for text in texts:
            if path == None:
                lay(yaml.decode(text) or {})
            else:
                values.set(path, one(text))
    lay(OWN)

hook(
    values_from,
    on = [
        %s,
    ],
)
`

// reference is one element of valuesFrom as parts of the hook.
type reference struct {
	row, watch string
	grants     []string
}

var (
	valuesKey  = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
	targetPath = regexp.MustCompile(`^[a-zA-Z0-9_\-./\\]{1,250}$`)
)

func (f *flux) reference(ref *yaml.Node, o *fluxObject, i int) (r reference, err error) {
	kind, name, key, to := text(ref, "kind"), text(ref, "name"), text(ref, "valuesKey"), text(ref, "targetPath")
	if key == "" {
		key = "values.yaml"
	}
	var path any
	switch {
	case kind != "ConfigMap" && kind != "Secret":
		return r, fmt.Errorf("%q is neither a ConfigMap nor a Secret", message.Cut(kind, 60))
	case name == "" || o.namespace == "":
		return r, fmt.Errorf("%s %s: its name or its namespace is missing", kind, name)
	case !valuesKey.MatchString(key):
		return r, fmt.Errorf("valuesKey is no key of a %s", kind)
	case to != "" && !targetPath.MatchString(to):
		return r, fmt.Errorf("targetPath %q leads into a list, or is no path", message.Cut(to, 60))
	case to != "":
		var steps []string
		for step := range strings.SplitSeq(strings.ReplaceAll(to, `\.`, "\x00"), ".") {
			steps = append(steps, strings.ReplaceAll(step, "\x00", "."))
		}
		path = steps
	}
	for j := 0; j+1 < len(ref.Content); j += 2 {
		switch field := ref.Content[j].Value; field {
		case "kind", "name", "valuesKey", "targetPath", "optional":
		case "literal":
			if text(ref, field) == "true" && to != "" {
				return r, fmt.Errorf("literal: write the text by values.set in a hook")
			}
		default:
			return r, fmt.Errorf("starling new does not know the field %s", message.Cut(field, 60))
		}
	}
	watch := fmt.Sprintf("values%d", i)
	r.row = fmt.Sprintf("(%s, %s, %s, %s),", starlark(watch), starlark(fmt.Sprintf("key %s of %s %s/%s", key, kind, o.namespace, name)), starlark(text(ref, "optional") == "true"), starlark(path))
	data := "o.get([\"data\", " + starlark(key) + "])"
	filter := "lambda o: " + data
	if kind == "Secret" {
		filter = "lambda o: base64.decode(" + data + ") if " + data + " else None"
		r.grants = []string{fmt.Sprintf("grant(\"v1\", \"Secret\", verbs = [\"list\", \"watch\"], names = [%s], namespaces = [%s])", starlark(name), starlark(o.namespace))}
	}
	r.watch = fmt.Sprintf("k8s.watch(\"v1\", %s, name = %s, namespaces = [%s], object_names = [%s], filter = %s)",
		starlark(kind), starlark(watch), starlark(o.namespace), starlark(name), filter)
	return r, nil
}
