package repl

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/object"
)

func (s *Session) cmdValues(_ context.Context, args []string) error {
	module := s.module
	if len(args) > 0 && s.world.Values(args[0]) != nil {
		module, args = args[0], args[1:]
	}
	if len(args) > 1 {
		return fmt.Errorf("there is no module %s%s", args[0], didYouMean(args[0], "", s.gen.Names))
	}
	all, err := s.visible(module)
	if err != nil {
		return err
	}
	var v any = all
	if len(args) == 1 {
		found, ok := object.Dotted(args[0]).Get(all)
		if !ok {
			return fmt.Errorf("module %s has no value %s", module, args[0])
		}
		v = found
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	s.out.result(strings.TrimRight(string(data), "\n"))
	return nil
}

// visible are the values of a module, with *** for what is known as secret.
func (s *Session) visible(module string) (map[string]any, error) {
	in, err := s.world.Explain(module)
	if err != nil {
		return nil, err
	}
	all := runtime.DeepCopyJSON(s.world.Values(module))
	for _, e := range in.Explain().Values {
		if !e.Secret || e.Removed || len(e.Keys) == 0 {
			continue
		}
		m := all
		for _, key := range e.Keys[:len(e.Keys)-1] {
			m, _ = m[key].(map[string]any)
		}
		if m != nil {
			m[e.Keys[len(e.Keys)-1]] = e.Value
		}
	}
	return all, nil
}
