package migrate

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// maxBody and maxBodyBytes are how much of an old hook the new one holds as comments.
const (
	maxBody      = 300
	maxBodyBytes = 64 << 10
)

// hookFile is one hook brought over.
type hookFile struct {
	text    string
	secrets []raw
	answers bool // it answers requests of the API server
}

// translateHook makes a .star file of an executable hook. ok is false for a hook whose
// bindings cannot be read, of which the notes say why.
func translateHook(n *notes, source []byte, at place, o Options) (h hookFile, ok bool) {
	if path.Ext(n.path) == ".go" {
		return translateGoHook(n, source, at, o)
	}
	text, line, err := configText(source, at.module)
	if err != nil {
		n.add(Left, "%v", err)
		return hookFile{}, false
	}
	c, unknown, err := parseConfig(text)
	if err != nil {
		n.add(Left, "%s", inFile(err, line))
		return hookFile{}, false
	}
	for _, field := range unknown {
		n.add(Left, "its config has the field %s, which this tool does not know", field)
	}
	return printHook(n, c, string(source), at, o), true
}

// translateGoHook is translateHook for a hook in Go.
func translateGoHook(n *notes, source []byte, at place, o Options) (h hookFile, ok bool) {
	c, computed, filters, err := goConfig(source, at.folder, at.folders)
	if library, ok := errors.AsType[*libraryHook](err); ok {
		return printLibraryHook(n, library, string(source), at, o), true
	}
	if err != nil {
		n.add(Left, "%v", err)
		return hookFile{}, false
	}
	for _, field := range computed {
		if strings.Contains(field, "Selector") {
			n.add(Left, "its field %s is computed: write the selector in the place of todo", field)
		} else {
			n.add(Left, "its field %s is computed, and left out", field)
		}
	}
	for _, watch := range slices.Sorted(maps.Keys(filters)) {
		n.add(Left, "the filter %s of the watch %q: write filter = …; until then the watch keeps whole objects", filters[watch], watch)
	}
	return printHook(n, c, string(source), at, o), true
}

// printLibraryHook prints the file of a hook that a library in Go registers. Of one that is not
// known there is only the function.
func printLibraryHook(n *notes, h *libraryHook, source string, at place, o Options) hookFile {
	if h.more > 0 {
		n.add(Left, "%s", h.others())
	}
	t := h.translate(at.module)
	if t == nil {
		n.add(Left, "%s: its bindings and its body are to write; see TODO in the new file", h)
		fn := hookFunction(n.path)
		return hookFile{text: fmt.Sprintf("%s\n\n# TODO: say what triggers it, then take the # away.\n# hook(%s, on = [])\n\n# The old hook:\n#\n%s",
			header(n.path)+"\n"+unwritten(fn, n.path), fn, oldBody(source))}
	}
	for _, todo := range t.todo {
		n.add(Left, "%s", todo)
	}
	n.add(Changed, "%s; its bindings are those of the library as of 2026", h)
	f := printHookWith(n, t.config, source, at, o, t)
	if t.grants != nil { // they cover the watches, too
		f.secrets = t.grants
	}
	return f
}

// hookFunction is the name of the function of an old hook.
func hookFunction(old string) string {
	base := path.Base(old)
	return functionName(strings.TrimSuffix(base, path.Ext(base)))
}

// header is the first line of a new hook.
func header(old string) string {
	return "# Brought over from " + message.Clean(old) + " by `starling new`: bindings are translated, the body is not."
}

// unwritten is the function of a new hook.
func unwritten(fn, old string) string {
	return fmt.Sprintf("\ndef %s(ctx):\n    # TODO: write in Starlark what the old hook below does, then take fail away.\n    fail(%s, permanent = True)\n",
		fn, starlark("not yet written: "+old))
}

func printHook(n *notes, c *config, source string, at place, o Options) hookFile {
	return printHookWith(n, c, source, at, o, &translation{})
}

// printHookWith is printHook with a body, after fail.
func printHookWith(n *notes, c *config, source string, at place, o Options, with *translation) hookFile {
	b := &binder{notes: n, place: at, custom: o.custom, lambdas: o.Lambdas, used: map[string]bool{},
		objects: path.Ext(n.path) != ".go" && readsObjects.MatchString(source)}
	fn := hookFunction(n.path)
	bindings := b.stages(c)
	for _, s := range c.Schedule {
		if text, ok := b.schedule(s); ok {
			bindings = append(bindings, text)
		}
	}
	for _, w := range c.Kubernetes {
		if text, ok := b.watch(w); ok {
			bindings = append(bindings, text)
		}
	}
	runs := len(bindings) > 0 // not only to answer requests
	for _, r := range c.Validating {
		bindings = append(bindings, b.review("k8s.validate", "validate", r))
	}
	for _, r := range c.Mutating {
		bindings = append(bindings, b.review("k8s.mutate", "mutate", r))
	}
	conversions := b.conversions(c.Conversion)
	count := len(bindings) + len(conversions)
	var out strings.Builder
	out.WriteString(header(n.path) + "\n")
	if with.loads != "" {
		out.WriteString("\n" + with.loads + "\n")
	}
	answers := len(c.Validating)+len(c.Mutating) > 0
	for _, v := range conversions { // those that read snapshots stand beside the watches
		if v.snapshots {
			out.WriteString("\n" + v.functions)
			bindings, answers = append(bindings, v.binding), true
		}
	}
	if len(bindings) > 0 {
		call := &call{name: "hook", args: []string{fn}}
		call.add("on = [\n        " + strings.Join(bindings, ",\n        ") + ",\n    ]")
		if runs {
			b.options(call, c)
			if setsValues.MatchString(source) { // its patches stayed, also when a later run made none
				call.set("values", "keep")
			}
		}
		out.WriteString(unwritten(fn, n.path) + with.body + "\n")
		out.WriteString(b.registered(call.text(0), answers))
		n.add(Left, "its body: see TODO in the new file")
	}
	for _, v := range conversions {
		if !v.snapshots {
			out.WriteString("\n" + v.functions + "\n" + b.registered("hook(on = [\n        "+v.binding+",\n    ])", true))
		}
	}
	if count == 0 {
		out.WriteString("# TODO: nothing triggers this hook; MIGRATION.md says why.\n")
		n.add(Left, "nothing triggers the hook")
	} else {
		n.add(Done, "%s", message.Count(count, "binding"))
	}
	out.WriteString("\n# The old hook:\n#\n" + oldBody(source))
	return hookFile{out.String(), b.secrets, answers || len(conversions) > 0}
}

// registered is a call of hook(…). Among the global hooks, which cannot wait as a module does,
// one that answers requests stays a comment until it is written: it would refuse them all.
func (b *binder) registered(text string, answers bool) string {
	if !answers || !b.place.global {
		return text + "\n"
	}
	b.add(Left, "it answers the API server: take the # before its hook(…) away once it is written")
	return "# TODO: once the function is written, take the # away.\n" + commented(text)
}

// setsValues are the ways in which old hooks set values.
var setsValues = regexp.MustCompile(`\bVALUES_JSON_PATCH_PATH\b|\bvalues::(set|unset|json)|\.Values\.(Set|Remove)\(`)

// readsObjects are the ways in which old hooks read the objects beside what their filters give.
var readsObjects = regexp.MustCompile(`\.object\b|\[["']object["']\]|\.get\(["']object["']`)

// oldBody is the source of the old hook as comments.
func oldBody(source string) string {
	lines := strings.SplitAfter(strings.TrimRight(source, "\n"), "\n")
	kept, size := 0, 0
	for kept < min(len(lines), maxBody) && size+len(lines[kept]) <= maxBodyBytes {
		size += len(lines[kept])
		kept++
	}
	text := commented(strings.Join(lines[:kept], ""))
	if kept < len(lines) {
		text += fmt.Sprintf("# … and %d lines more.\n", len(lines)-kept)
	}
	return text
}

// testFile is the skeleton of a test of a hook.
func testFile(fn, old string) string {
	return fmt.Sprintf(`# TODO: apply the objects that %s watches, call t.start(), and say what the hook does.

def test_%s(t):
    pass
`, message.Clean(old), fn)
}
