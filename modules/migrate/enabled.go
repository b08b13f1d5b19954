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

// guard is a call of the library of Deckhouse that switches the module off, or ends the script.
var guard = regexp.MustCompile(`^enabled::(disable_module_if_cluster_is_not_bootstraped|disable_module_in_kubernetes_versions_less_than|fail_if_values_are_not_set) *(.*)$`)

var (
	globalPaths = regexp.MustCompile(`^"?global(\.[A-Za-z0-9]+)+"?( "?global(\.[A-Za-z0-9]+)+"?)*$`)
	oldVersion  = regexp.MustCompile(`^"?1\.([12]?[0-9])(\.[0-9]+)?"?$`) // older than all that Starling runs on
)

// condition is a global value that must be true, or only there.
type condition struct {
	path   string
	isTrue bool
}

// text is what def enabled() says of a condition. It waits, and does not switch the module off, as the
// script did: nothing is uninstalled because the hook that sets the value is not written.
func (c condition) text() string {
	if c.isTrue {
		return "    if values.get(" + starlark(c.path) + ") != True:\n        return waiting(" + starlark(c.path+" is not true") + ")\n"
	}
	return "    if values.get(" + starlark(c.path) + ") == None:\n        return waiting(" + starlark(c.path+" is not set") + ")\n"
}

// guards takes the guards at the beginning of a script apart: conditions, and the script without them.
// ok is false for a guard that is not understood.
func guards(source string) (conditions []condition, rest string, ok bool) {
	var kept strings.Builder
	begun := false
	for line := range strings.Lines(source) {
		text := strings.TrimSpace(line)
		m := guard.FindStringSubmatch(text)
		if m == nil {
			kept.WriteString(line)
			begun = begun || !noise.MatchString(text)
			continue
		}
		argument := strings.TrimSpace(m[2])
		switch {
		case begun:
			return nil, "", false
		case m[1] == "disable_module_if_cluster_is_not_bootstraped" && argument == "":
			conditions = append(conditions, condition{"global.clusterIsBootstrapped", true})
		case m[1] == "disable_module_in_kubernetes_versions_less_than" && oldVersion.MatchString(argument):
		case m[1] == "fail_if_values_are_not_set" && globalPaths.MatchString(argument):
			for _, p := range strings.Fields(argument) {
				conditions = append(conditions, condition{strings.Trim(p, `"`), false})
			}
		default:
			return nil, "", false
		}
	}
	return conditions, kept.String(), true
}

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

// enabledFunction makes def enabled() of an enabled script, requirements, or conditions. A script that only
// says true or false is translated, and one that asks whether other modules of the tree are on; of any
// other the function holds the script, and waits.
func enabledFunction(n *notes, source string, modules map[string]string) (function string, requires []string, conditions []condition) {
	conditions, rest, understood := guards(source)
	requires = requirements(rest)
	names := slices.Collect(builtins.Required(requires))
	if len(conditions) > 0 {
		defer func() {
			if conditions != nil {
				n.add(Changed, "the script switched the module off while a global value was missing; enabled() waits for it")
			}
		}()
	}
	if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return modules[name] == "" }) {
		n.add(Done, "it is module(requires = …)")
		return "", requires, conditions
	}
	result, plain := "", understood
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if m := answer.FindStringSubmatch(line); m != nil && result == "" {
			result = m[1]
			continue
		}
		plain = plain && noise.MatchString(line)
	}
	switch {
	case plain && result == "true" && len(conditions) > 0:
		return "", nil, conditions
	case plain && result == "true":
		n.add(Done, "the script always says true")
		return "\ndef enabled():\n    return True\n", nil, nil
	case plain && result == "false":
		n.add(Done, "the script always says false")
		return "\ndef enabled():\n    return disabled(\"the old enabled script always said false\")\n", nil, nil
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
		"    return waiting(" + starlark("not yet written: "+n.path) + ")\n\n# The old script:\n#\n" + oldBody(source), nil, nil
}
