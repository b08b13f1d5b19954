package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Changes of the user's config are writes of an object: committed in call order, recorded, and
// made again until they stand.

func configSpecs() []spec.Spec {
	path := spec.Required("path", spec.Path)
	return []spec.Spec{
		declare("config.set", spec.InRun, spec.Writes, callConfigChange(false), path, spec.Required("value", spec.Any),
			onErrorParam),
		declare("config.remove", spec.InRun, spec.Writes, callConfigChange(true), path, onErrorParam),
	}
}

// configPaths reads config= of module().
func (c *call) configPaths(global bool) ([]string, error) {
	paths := c.Strings("config")
	for _, path := range paths {
		switch below := belowGlobal(path); {
		case path == "":
			return nil, errors.New("config: a path is empty")
		case global && below == "":
			return nil, fmt.Errorf("config: %q: hooks here may change values below global, as global.zone", spec.Clip(path))
		case !global && (path == "global" || below != ""):
			return nil, fmt.Errorf("config: %q: hooks of a module may change its own section", spec.Clip(path))
		}
	}
	return paths, nil
}

// belowGlobal is what follows "global." in a path, or "".
func belowGlobal(path string) string {
	if keys := object.Dotted(path).Resolve(nil); len(keys) > 1 && keys[0] == "global" {
		return object.KeysText(keys[1:])
	}
	return ""
}

func callConfigChange(remove bool) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		r, keys := c.run, c.Path("path").Resolve(c.run.Config)
		if err := c.mayConfigure(keys); err != nil {
			return nil, err
		}
		was, _ := object.Get(r.Config, keys)
		change := &effect.ConfigChange{Key: object.CamelKey(r.Module), Path: keys, Remove: remove, Was: was}
		if r.Global {
			change.Path = keys[1:]
		}
		if !remove {
			var err error
			if change.Value, change.Secrets, err = object.ToPlainMarked(c.Arg("value"), keys); err != nil {
				return nil, err
			}
			if change.Value == nil {
				return nil, errors.New("value: None is no value that a user sets; config.remove takes one out")
			}
		}
		for _, w := range r.Effects.Writes {
			if w.Kind == effect.WriteConfig && (hasPrefix(w.Config.Path, change.Path) || hasPrefix(change.Path, w.Config.Path)) {
				return nil, fmt.Errorf("this run changes %s already (%s)", object.KeysText(w.Config.Path), w.Pos)
			}
		}
		w := effect.Write{Kind: effect.WriteConfig, Config: change,
			Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: r.Instance.Namespace, Name: r.Instance.Name}}
		if err := c.record(w); err != nil {
			return nil, err
		}
		if remove {
			r.Config = configWithout(r.Config, keys)
		} else {
			r.Config = withValue(r.Config, keys, change.Value)
		}
		return nil, nil
	}
}

// mayConfigure says whether the hook may change what is at keys of the user's config.
func (c *call) mayConfigure(keys []string) error {
	r := c.run
	if err := checkKeys(keys, r.Config); err != nil {
		return err
	}
	switch {
	case r.Instance == (effect.Instance{}):
		return errors.New("there is no ConfigMap of the user here")
	case r.Global && (keys[0] != "global" || len(keys) == 1):
		return fmt.Errorf("global hooks change values below global, not %s", object.KeysText(keys))
	case r.Free:
		return nil
	}
	for _, text := range r.MayConfigure {
		if hasPrefix(keys, object.Dotted(text).Resolve(r.Config)) {
			return nil
		}
	}
	text := object.KeysText(keys)
	return spec.Finalf("hook %s/%s may not change %s in the user's config; add to %s: module(config = [%q])",
		r.Module, r.Hook, text, c.moduleFile(), text)
}

func hasPrefix(keys, prefix []string) bool {
	return len(keys) >= len(prefix) && slices.Equal(keys[:len(prefix)], prefix)
}

// configWithout returns m without what is at keys, sharing all that did not change.
func configWithout(m map[string]any, keys []string) map[string]any {
	if _, there := m[keys[0]]; !there {
		return m
	}
	out := maps.Clone(m)
	if len(keys) == 1 {
		delete(out, keys[0])
	} else if below, isMap := m[keys[0]].(map[string]any); isMap {
		out[keys[0]] = configWithout(below, keys[1:])
	}
	return out
}
