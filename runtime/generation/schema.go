package generation

import (
	"fmt"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// Schemas reads the module's openapi/ files: config is what a user may set, all what
// hooks and templates may use. Each may extend the other; nil: there is none.
func (m *Module) Schemas() (config, all *values.Schema, err error) {
	t := m.Tree
	files := map[string]*tree.File{"config-values.yaml": t.ConfigSchema, "values.yaml": t.ValuesSchema}
	load := func(name string) ([]byte, error) {
		if f := files[name]; f != nil {
			return f.Data, nil
		}
		return nil, fmt.Errorf("there is no openapi/%s in the module", name)
	}
	if f := t.ConfigSchema; f != nil {
		if config, err = values.ParseSchema(f.Path, f.Data, load); err != nil {
			return nil, nil, err
		}
	}
	if f := t.ValuesSchema; f != nil {
		if all, err = values.ParseSchema(f.Path, f.Data, load); err != nil {
			return nil, nil, err
		}
	}
	return config, all, nil
}
