package generation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// schemas are what the module's openapi/ files say.
type schemas struct {
	config, all *values.Schema
	err         error
	digest      string
}

// SchemasDigest identifies the texts of the schemas.
func (m *Module) SchemasDigest() string {
	if m.schemas == nil {
		return ""
	}
	return m.schemas.digest
}

func newSchemas(t *tree.Module) *schemas {
	s := &schemas{}
	s.config, s.all, s.err = readSchemas(t)
	sum := sha256.New()
	for _, f := range append([]*tree.File{t.ConfigSchema, t.ValuesSchema}, t.Definitions...) {
		if f != nil {
			fmt.Fprintf(sum, "%q %d:", f.Path, len(f.Data))
			sum.Write(f.Data)
		}
	}
	s.digest = hex.EncodeToString(sum.Sum(nil))
	return s
}

// Schemas returns what the module's openapi/ files say: config is what a user may set, all
// what hooks and templates may use. Each may extend the other; nil: there is none.
func (m *Module) Schemas() (config, all *values.Schema, err error) {
	if s := m.schemas; s != nil {
		return s.config, s.all, s.err
	}
	return readSchemas(m.Tree)
}

// readSchemas takes seconds where schemas are large: it is part of a module's load.
func readSchemas(t *tree.Module) (config, all *values.Schema, err error) {
	files := map[string]*tree.File{"config-values.yaml": t.ConfigSchema, "values.yaml": t.ValuesSchema}
	for _, f := range t.Definitions {
		files[path.Base(f.Path)] = f
	}
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
