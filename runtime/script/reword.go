package script

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
)

// rewording says in better words what go.starlark.net says, for people who know another language.
type rewording struct {
	// match is the message, since go.starlark.net has no error types for them.
	match *regexp.Regexp
	// line is the line of the file with the mistake; nil: any. The error then has the place of the match, or of
	// its group "at".
	line *regexp.Regexp
	// msg is empty to keep the message. $1 is a group of line, or of match.
	msg, hint string
}

// findable is a rewording with a text that each of its messages holds: to look for that takes less time than to match.
type findable struct {
	rewording
	part string
}

// rewordings is the table; the first that matches counts.
var rewordings = sync.OnceValue(func() (all []findable) {
	for _, r := range slices.Concat(grammarRewordings(), valueRewordings()) {
		all = append(all, findable{r, partOf(r.match.String())})
	}
	return all
})

// partOf is the longest plain text that all matches of a pattern hold.
func partOf(pattern string) (longest string) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	for _, e := range append(tree.Sub, tree) {
		text := string(e.Rune)
		inAll := e == tree || tree.Op == syntax.OpConcat
		if inAll && e.Op == syntax.OpLiteral && e.Flags&syntax.FoldCase == 0 && len(text) > len(longest) {
			longest = text
		}
	}
	return longest
}

// reword changes the message of e where the table has better words. A hint that
// is there stays.
func reword(e *Error) {
	if rewordMember(e) || rewordCall(e) {
		return
	}
	for _, r := range rewordings() {
		if !strings.Contains(e.Msg, r.part) {
			continue
		}
		groups := r.match.FindStringSubmatchIndex(e.Msg)
		if groups == nil {
			continue
		}
		pattern, text := r.match, e.Msg
		if r.line != nil {
			if pattern, text, groups = r.line, e.Source, before(r.line, e); groups == nil {
				continue
			}
			e.Col = 1 + utf8.RuneCountInString(text[:mistakeAt(r.line, text, groups)])
		}
		// A message that quotes the error of another one, as that of t.start does, has its hint already.
		if hint := string(pattern.ExpandString(nil, r.hint, text, groups)); e.Hint == "" && !strings.Contains(e.Msg, hint) {
			e.Hint = hint
		}
		if r.msg != "" {
			// "append: cannot append to frozen list" keeps who says it.
			prefix := ""
			if who, _, ok := strings.Cut(e.Msg, ": "); ok && !strings.Contains(who, " ") {
				prefix = who + ": "
			}
			e.Msg = prefix + string(pattern.ExpandString(nil, r.msg, text, groups))
		}
		return
	}
}

// Reworded says in better words what go.starlark.net says of a mistake.
func Reworded(msg string) (better, hint string) {
	e := &Error{Msg: msg}
	reword(e)
	return e.Msg, e.Hint
}

// before finds the last match in the line of e that begins before its column: the parser sees a mistake
// where it ends, or later.
func before(line *regexp.Regexp, e *Error) (groups []int) {
	for _, m := range line.FindAllStringSubmatchIndex(e.Source, -1) {
		if utf8.RuneCountInString(e.Source[:m[0]]) < e.Col {
			groups = m
		}
	}
	return groups
}

// mistakeAt is where in the line the mistake is.
func mistakeAt(line *regexp.Regexp, text string, groups []int) int {
	if at := line.SubexpIndex("at"); at >= 0 {
		return groups[2*at]
	}
	match := text[groups[0]:]
	return groups[0] + len(match) - len(strings.TrimLeft(match, " \t"))
}

var namespaceCall = regexp.MustCompile(`\b([a-z]\w*)\(`)

// rewordCall is about a namespace that is called as a function.
func rewordCall(e *Error) bool {
	if e.Msg != "invalid call of non-function (module)" {
		return false
	}
	if m := before(namespaceCall, e); m != nil && e.Hint == "" {
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
