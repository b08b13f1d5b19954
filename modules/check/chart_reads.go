package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

// chartReads holds the paths that templates name to the schemas: Helm renders a value
// that is never there to nothing, without a word.
func (c *checker) chartReads(m *generation.Module, reads []chart.Read) {
	if m.ChartValues != nil {
		return // the chart sees what a function makes up
	}
	shape := c.view(m)
	switches := c.gen.Switches()
	for _, r := range reads {
		path, of := r.Path, c.values[m.Name]
		switch key := m.Decl.ValuesKey; {
		case path[0] == values.GlobalKey && len(path) > 1 && path[1] == builtins.ExportsKey:
			if why := c.exportRead(path[2:]); why != "" {
				c.chartRead(m, r, why)
			}
			continue
		case path[0] == values.GlobalKey:
			path, of = path[1:], c.values[values.GlobalKey]
		case key != "" && path[0] != key && m.BesideOwn()[path[0]] != nil:
			continue
		case key != "" && path[0] != key:
			c.chartRead(m, r, fmt.Sprintf("the chart sees the module's values below %s (values_key)", key))
			continue
		case key != "":
			path = path[1:]
		}
		schema, near := of.schema, false
		if schema == nil { // hooks may set more than users do: only what looks like one of theirs is told of
			schema, near = of.config, true
		}
		if schema == nil || len(path) == 0 || slices.Contains(switches, path[0]) {
			continue
		}
		seen := path
		if r.Path[0] == values.GlobalKey {
			seen = r.Path
		}
		if _, there := object.Get(shape, seen); there {
			continue
		}
		for _, p := range schema.UnknownOps([]effect.ValueOp{{Op: effect.OpRemove, Path: path}}) {
			if near && !strings.Contains(p.Message, "did you mean") {
				continue
			}
			c.chartRead(m, r, "the schema has no such field ("+strings.TrimLeft(strings.TrimPrefix(p.Message, "unknown field"), ",; ")+")")
		}
	}
}

func (c *checker) chartRead(m *generation.Module, r chart.Read, why string) {
	c.add(Finding{
		Severity: Warning, Check: "values", Module: m.Name, File: c.chartFile(m, r.File), Line: r.Line, Col: r.Col,
		Message: ".Values." + strings.Join(r.Path, ".") + " is never there: " + why,
	})
}
