package migrate

import (
	"regexp"
	"strings"
)

// Lines of an enabled script that say nothing about the answer.
var noise = regexp.MustCompile(`^(#.*|set [-+].*|(source|\.) .*|function __main__\(\) *\{|__main__\(\) *\{|\}|(enabled|hook)::run.*|__main__.*)?$`)

var answer = regexp.MustCompile(`^echo ["']?(true|false)["']? *> *["']?\$\{?MODULE_ENABLED_RESULT\}?["']?$`)

// enabledFunction makes def enabled() of an enabled script. A script that only says true or
// false is translated; of any other the function holds the script, and waits.
func enabledFunction(n *notes, source string) string {
	result, plain := "", true
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if m := answer.FindStringSubmatch(line); m != nil && result == "" {
			result = m[1]
			continue
		}
		plain = plain && noise.MatchString(line)
	}
	switch {
	case plain && result == "true":
		n.add(Done, "the script always says true")
		return "\ndef enabled():\n    return True\n"
	case plain && result == "false":
		n.add(Done, "the script always says false")
		return "\ndef enabled():\n    return disabled(\"the old enabled script always said false\")\n"
	}
	n.add(Left, "the script decides as it runs; enabled() waits until it is written")
	if strings.Contains(source, "enabledModules") {
		n.add(Left, "it asks which modules are on; where it asks for modules that must be on, module(requires = […]) says the same")
	}
	return "\ndef enabled():\n    # TODO: write in Starlark what the old script below does; values.get reads values.\n" +
		"    return waiting(" + starlark("not yet written: "+n.path) + ")\n\n# The old script:\n#\n" + oldBody(source)
}
