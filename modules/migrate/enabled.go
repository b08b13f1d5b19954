package migrate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
)

// Lines of an enabled script that say nothing about the answer.
var noise = regexp.MustCompile(`^(#.*|set [-+].*|(source|\.) .*|function __main__\(\) *\{|__main__\(\) *\{|\}|(enabled|hook)::run.*|__main__.*)?$`)

var answer = regexp.MustCompile(`^echo ["']?(true|false)["']? *> *["']?\$\{?MODULE_ENABLED_RESULT\}?["']?$`)

const says = ` *> *["']?\$\{?MODULE_ENABLED_RESULT\}?["']?`

// has asks whether a module is on, or off.
var has = regexp.MustCompile(`^(! *)?values::array_has "?global\.enabledModules"? "?([a-z0-9-]+)"?$`)

// required is a script that says true if some modules are on, and else false.
var required = regexp.MustCompile(`^if (.+?) *; *then\necho ["']?true["']?` + says + `\nelse\necho ["']?false["']?` + says + `\nfi$`)

// requirements are what module(requires=) says for a script that says true by which modules are on; nil
// where it decides by anything else.
func requirements(source string) (names []string) {
	var lines []string
	for line := range strings.Lines(source) {
		if line = strings.TrimSpace(line); !noise.MatchString(line) {
			lines = append(lines, line)
		}
	}
	m := required.FindStringSubmatch(strings.Join(lines, "\n"))
	if m == nil {
		return nil
	}
	for _, condition := range strings.Split(m[1], " && ") {
		var any []string
		for _, one := range strings.Split(condition, " || ") {
			name := has.FindStringSubmatch(strings.TrimSpace(one))
			if name == nil {
				return nil
			}
			if name[1] != "" {
				name[2] = "!" + name[2]
			}
			any = append(any, name[2])
		}
		// The shell reads && and || from left to right, and requires= has no "not this, or that".
		if len(any) > 1 && (strings.Contains(m[1], " && ") || strings.Contains(strings.Join(any, ""), "!")) {
			return nil
		}
		names = append(names, strings.Join(any, "|"))
	}
	return names
}

// enabledFunction makes def enabled() of an enabled script, or requirements. A script that only says
// true or false is translated, and one that asks whether other modules of the tree are on; of any
// other the function holds the script, and waits.
func enabledFunction(n *notes, source string, modules map[string]string) (function string, requires []string) {
	requires = requirements(source)
	names := slices.Collect(builtins.Required(requires))
	if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return modules[name] == "" }) {
		n.add(Done, "it is module(requires = …)")
		return "", requires
	}
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
		return "\ndef enabled():\n    return True\n", nil
	case plain && result == "false":
		n.add(Done, "the script always says false")
		return "\ndef enabled():\n    return disabled(\"the old enabled script always said false\")\n", nil
	}
	n.add(Left, "the script decides as it runs; enabled() waits until it is written")
	for _, name := range names {
		if modules[name] == "" {
			n.add(Left, "it asks for the module %s, which is not in the tree", name)
		}
	}
	if strings.Contains(source, "enabledModules") {
		n.add(Left, "it asks which modules are on: values.get(\"global.enabledModules\") names those that come before this one; module(requires = […]) says which ones must be on, or off")
	}
	return "\ndef enabled():\n    # TODO: write in Starlark what the old script below does; values.get reads values.\n" +
		"    return waiting(" + starlark("not yet written: "+n.path) + ")\n\n# The old script:\n#\n" + oldBody(source), nil
}
