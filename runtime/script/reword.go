package script

import (
	"regexp"
	"strings"
)

// foreignHint helps with undefined names that people bring along from Python, Go
// and JSON; "" for any other.
func foreignHint(name string) string {
	switch name {
	case "null", "nil", "undefined":
		return "use None"
	case "true":
		return "did you mean True?"
	case "false":
		return "did you mean False?"
	case "isinstance":
		return `use type(x) == "dict"`
	case "sum":
		return "add up in a for loop"
	case "open", "os", "sys", "subprocess", "requests":
		return "hooks reach files, processes and the network only through builtins"
	}
	return ""
}

// rewording changes a message of go.starlark.net for people who write hooks.
type rewording struct {
	match *regexp.Regexp
	msg   string // empty: keep the message
	hint  string
}

// rewordings returns the table. Messages are matched, since go.starlark.net has
// no error types for them.
func rewordings() []rewording {
	re := regexp.MustCompile
	return []rewording{
		{re(`cannot .* frozen (hash table|list)$`), "this value is shared and cannot be changed", "copy(x) makes a copy you may change"},
		{re(`cannot .* (hash table|list) during iteration$`), "this value cannot be changed while a loop goes over it", "loop over list(x) instead"},
		{re(`^object value does not support item assignment$`), "", "dict(o) makes a copy you may change"},
		{re(`^"event" struct has no \.object attribute`), "", `events of a watch with keep = "object" have it; .result is what the filter kept`},
		{re(`^"event" struct has no \.(result|namespace|name) attribute`), "", `only events about objects have it: added, modified and deleted; see .type`},
		{re(`^"child" struct has no \.\w+ attribute`), "", "a child has .kind, .namespace, .name, .ready, .reason and .deleting; a row of reads= shows the rest of it"},
		{re(`^ctx has no \.(events|snapshots|synced|state|now|module|attempt|request) field or method`), "", "the ctx of a controller has .key, .object, .children, .reads and .reached(t); reads= finds other objects"},
		{re(`^unhandled index operation module\[`), "", `call what it has: .get("key"), .set("key", value)`},
		{re(`^got string literal, want newline$`), "", `there is no f"…": use "%s" % x; texts are joined with +`},
		{re(`^this Starlark dialect does not support while loops`), "there is no while loop", "use for i in range(n), and break"},
		{re(`^function \S+ called recursively$`), "", "recursion is off: use a loop"},
		{re(`^(if|for) (statement|loop) not within a function$`), "", "put it into a def; at the top of a file stand only assignments, defs, loads and calls"},
		{re(`^cannot reassign (global|top-level) `), "", "give it another name, or put it into a def"},
		{re(`^excessive repeat `), "", "the result would be too large"},
		{re(`^got (import|from),? `), "", `use load("//path/file.star", "name")`},
		{re(`^got (try|except|raise|finally),? `), "", "errors are not caught: a failed run is repeated; use fail(msg) to fail"},
		{re(`^got (class|with|async|await|yield|global|nonlocal|del|assert|is),? `), "", "Starlark has no such statement"},
	}
}

// reword changes the message of e where the table has better words. A hint that
// is there stays.
func (h *Host) reword(e *Error) {
	for _, r := range h.rewordings {
		if !r.match.MatchString(e.Msg) {
			continue
		}
		if r.msg != "" {
			// "append: cannot append to frozen list" keeps who says it.
			prefix := ""
			if who, _, ok := strings.Cut(e.Msg, ": "); ok && !strings.Contains(who, " ") {
				prefix = who + ": "
			}
			e.Msg = prefix + r.msg
		}
		if e.Hint == "" {
			e.Hint = r.hint
		}
		return
	}
}
