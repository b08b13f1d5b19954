package script

import (
	_ "embed" // of the tables
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/wording"
)

// Errors of go.starlark.net have no types: rewordings are better words for their texts, for people who know another
// language. The table foreign holds words of other languages: names, members of values and namespaces, and namespaces
// that are called.
var (
	//go:embed wording/starlark.txt
	starlarkText string
	//go:embed wording/foreign.txt
	foreignText string

	rewordings = sync.OnceValue(func() wording.Table { return wording.Read(starlarkText, nil) })
	foreign    = sync.OnceValue(func() wording.Table { return wording.Read(foreignText, nil) })
)

// reword changes the message of e where the table has better words. A hint that
// is there stays.
func reword(e *Error) {
	if rewordMember(e) || rewordCall(e) {
		return
	}
	better, ok := rewordings().Find(mistake(e))
	if !ok {
		return
	}
	e.Col, e.row = better.Col, better.Row
	// A message that quotes the error of another one, as that of t.start does, has its hint already.
	if e.Hint == "" && !strings.Contains(e.Msg, better.Hint) {
		e.Hint = better.Hint
	}
	if better.Message != "" {
		// "append: cannot append to frozen list" keeps who says it.
		prefix := ""
		if who, _, ok := strings.Cut(e.Msg, ": "); ok && !strings.Contains(who, " ") {
			prefix = who + ": "
		}
		e.Msg = prefix + better.Message
	}
}

func mistake(e *Error) wording.Mistake {
	return wording.Mistake{Said: e.Msg, Line: e.Source, Col: e.Col}
}

// Reworded says in better words what go.starlark.net says of a mistake.
func Reworded(msg string) (better, hint string) {
	e := &Error{Msg: msg}
	reword(e)
	return e.Msg, e.Hint
}

// foreignHint helps with undefined names that people bring along from Python, Go and JSON; "" for any other.
func foreignHint(name string) string { return foreign().Hint(name) }

// MemberHint says how that is written which people of other languages look for in a value, or in a
// namespace of builtins: MemberHint("json", "loads"). Empty: it is nothing that is known.
func MemberHint(of, name string) string { return foreign().Hint(of + "." + name) }

// CallHint says what of a namespace is called, when somebody calls the namespace itself.
func CallHint(namespace string) string { return foreign().Hint(namespace + "()") }

var namespaceCall = regexp.MustCompile(`\b([a-z]\w*)\(`)

// rewordCall is about a namespace that is called as a function.
func rewordCall(e *Error) bool {
	if e.Msg != "invalid call of non-function (module)" {
		return false
	}
	if m := wording.Before(namespaceCall, mistake(e)); m != nil && e.Hint == "" {
		e.Hint = CallHint(e.Source[m[2]:m[3]])
	}
	return true
}

var (
	absentMember = regexp.MustCompile(`^(\S+) has no \.(\w+)( field or method)?( \(.*\))?$`)
	absentField  = regexp.MustCompile(`^object has no field "([\w-]+)"`)
)

// rewordMember does the same for members that a value does not have.
func rewordMember(e *Error) bool {
	if m := absentField.FindStringSubmatch(e.Msg); m != nil {
		if e.Hint = MemberHint("object", m[1]); e.Hint == "" {
			e.Hint = deeperHint(e.Msg, m[1])
		}
		if e.Hint == "" && !strings.Contains(e.Msg, "did you mean") {
			e.Hint = `.get("` + m[1] + `") is None where it is absent`
		}
		return true
	}
	m := absentMember.FindStringSubmatch(e.Msg)
	if m == nil {
		return false
	}
	of, name := m[1], m[2]
	hint := MemberHint(of, name)
	switch {
	case hint != "":
	case of == "dict" && message.Nearest(name, (*starlark.Dict)(nil).AttrNames()) == "":
		hint = `["` + name + `"] reads a key, .get("` + name + `") one that may be absent`
	case of == "NoneType" && (name == "set" || name == "merge" || name == "remove" || name == "append"):
		hint = "the call before ." + name + " returns None: write each call on a line, values.set(…)"
	case of == "NoneType":
		hint = `the value before .` + name + ` is None; o.get("a.b") of an object goes past what is absent, d.get("a", {}) of a dict has a default`
	default:
		return false
	}
	e.Msg, e.Hint = of+" has no ."+name+m[3], hint
	return true
}

// deeper are fields that stand below one of the first level in manifests.
var deeper = map[string]string{
	"name": "metadata", "namespace": "metadata", "labels": "metadata", "annotations": "metadata", "uid": "metadata",
	"creationTimestamp": "metadata", "deletionTimestamp": "metadata", "ownerReferences": "metadata", "finalizers": "metadata",
	"generation": "metadata", "resourceVersion": "metadata",
	"replicas": "spec", "containers": "spec", "nodeName": "spec", "template": "spec", "selector": "spec",
	"phase": "status", "conditions": "status", "readyReplicas": "status",
}

// deeperHint is about a field that was looked for one level too high: msg lists those that are there.
func deeperHint(msg, name string) string {
	above := deeper[name]
	_, has, _ := strings.Cut(msg, "; it has ")
	if above == "" || !slices.Contains(strings.Split(has, ", "), above) {
		return ""
	}
	return "use o." + above + "." + name
}
