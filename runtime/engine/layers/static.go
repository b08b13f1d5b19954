package layers

import (
	"encoding/json"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
)

// Prepare composes the values of a module that do not move, and its schemas: tree is what the
// tree's values say of it, file is where. Broken is what is wrong with them, or "".
func (l *Layers) Prepare(gen *generation.Module, tree map[string]any, file string) (c *values.Composer, broken string) {
	s := values.Section{Name: gen.Name, Key: gen.Key}
	fail := func(err error) {
		if err != nil && broken == "" {
			broken = err.Error()
		}
	}
	if gen.Tree != nil {
		s.Static = gen.FileValues()
		var err error
		s.ConfigSchema, s.Schema, err = gen.Schemas()
		fail(err)
	}
	if tree != nil {
		s.Static = append(s.Static, values.Layer{Name: "tree values.yaml", File: file, Data: tree})
	}
	err := l.o.Evaluate("values of "+gen.Name, func() []string { return staticParts(s, gen) }, func() error {
		c = values.NewComposer(s)
		if broken == "" && gen.Err == nil {
			if problems := c.CheckTree(); len(problems) > 0 {
				return problems[0]
			}
		}
		return nil
	})
	fail(err)
	if c == nil { // it must not be evaluated
		c = values.NewComposer(values.Section{Name: s.Name, Key: s.Key})
	}
	return c, broken
}

// staticParts identify the values of a module that do not move, and its schemas.
func staticParts(s values.Section, gen *generation.Module) []string {
	parts := []string{gen.SchemasDigest()}
	for _, l := range s.Static {
		data, err := json.Marshal(l.Data)
		if err != nil {
			return nil // no number: its name alone identifies it
		}
		parts = append(parts, string(data))
	}
	return parts
}
