package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
)

// Allow adds grants that charts need to the module.star of their modules, by name: the lines
// of module(installs = […]) and module(lookup = […]).
func (r *Result) Allow(installs, lookups map[string][]string) {
	for _, m := range r.modules {
		m.installs, m.lookups = installs[m.name], lookups[m.name]
	}
	r.compose()
}

// moduleFile returns module.star; "" where none is needed.
func (m *module) moduleFile() string {
	global := m.name == "global"
	if global && m.hooks == 0 {
		return ""
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "    "+fmt.Sprintf(format, args...)+"\n") }
	list := func(name string, grants []string) {
		if len(grants) > 0 {
			slices.Sort(grants)
			add("%s = [\n        %s,\n    ],", name, strings.Join(slices.Compact(grants), ",\n        "))
		}
	}
	for _, line := range m.lines {
		add("%s", line)
	}
	if m.enabled != nil {
		add("enabled = %s,", starlark(*m.enabled))
	}
	if len(m.requires) > 0 && m.unmet() == "" {
		add("requires = %s,", starlark(m.requires))
	}
	if m.hasChart() {
		add("values_key = %s,  # templates read .Values.%s", starlark(tree.Key(m.name)), tree.Key(m.name))
		add("adopt = True,  # takes the release over that addon-operator has installed")
		if len(m.installs) > 0 {
			add("# More than this where other values make the chart hold more: `starling check` names it.")
		}
		list("installs", m.installs)
		list("lookup", m.lookups)
	}
	if m.hooks > 0 {
		add("# TODO: a grant for all that the hooks read and write besides their watches.")
		secrets := make([]string, len(m.secrets))
		for i, s := range m.secrets {
			secrets[i] = string(s)
		}
		list("grants", secrets)
	}
	call := "module()\n"
	if len(lines) > 0 {
		call = "module(\n" + strings.Join(lines, "") + ")\n"
	}
	return "# Brought over from " + cmp.Or(m.origin, m.dir) + " by `starling new`.\n\n" + call + m.enabledText() + m.chartValues()
}

// unmet is a module that this one requires, and that is not brought over.
func (m *module) unmet() string {
	for name := range builtins.Required(m.requires) {
		if m.modules[name] == "" {
			return name
		}
	}
	return ""
}

// enabledText is def enabled(). A chart whose values are not all there yet would break the
// release that it takes over, and a hook that is not written would refuse what it is asked
// about: such a module waits.
func (m *module) enabledText() string {
	why := ""
	switch {
	case m.unmet() != "":
		why = "the module " + m.unmet() + ", which it requires"
	case m.hasChart() && m.missing != "":
		why = m.missing
	case m.hasChart() && m.hooks > 0:
		why = "its hooks"
	case m.answers:
		why = "hooks that answer the API server"
	}
	wait := "    # TODO: return True once all that MIGRATION.md lists is written. Until then nothing happens.\n" +
		"    return waiting(" + starlark("not yet written: "+why) + ")\n"
	if len(m.conditions) > 0 {
		var b strings.Builder
		b.WriteString("\ndef enabled():\n")
		for _, c := range m.conditions {
			b.WriteString(c.text())
		}
		if why == "" {
			wait = "    return True\n"
		}
		return b.String() + wait
	}
	answers := strings.Contains(m.function, "return waiting(") || strings.Contains(m.function, "return disabled(")
	if why == "" || answers || m.name == "global" {
		return m.function
	}
	return "\ndef enabled():\n" + wait
}

// chartValues is def chart_values(v), where the chart has values outside of the module's
// section: Helm took them from values.yaml of the chart. Or the section was a list.
func (m *module) chartValues() string {
	list := m.list && m.hasChart()
	if len(m.besides) == 0 && !list {
		return ""
	}
	var b strings.Builder
	b.WriteString("\ndef chart_values(v):\n    chart = dict(v)\n")
	if key := starlark(tree.Key(m.name)); list {
		fmt.Fprintf(&b, "    chart[%s] = v[%s].get(%s, [])  # a list, as templates read it\n", key, key, starlark(listKey))
	}
	if len(m.besides) > 0 {
		b.WriteString("    # Values of the chart that stood beside those of the module.\n")
	}
	for _, key := range slices.Sorted(maps.Keys(m.besides)) {
		fmt.Fprintf(&b, "    chart[%s] = %s\n", starlark(key), starlark(m.besides[key]))
	}
	b.WriteString("    return chart\n")
	return b.String()
}
