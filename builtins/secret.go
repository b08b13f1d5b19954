package builtins

import (
	"encoding/base64"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Secrets: texts that no log line, error or JSON shows.

func secretSpecs() []Spec {
	return []Spec{
		{Name: "k8s.secret", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callSecret,
			Params: []Param{required("name", TypeString), required("key", TypeString),
				optional("namespace", TypeString, "None")}},
		{Name: "reveal", Phases: PhaseAny, call: callReveal, Params: []Param{required("s", TypeSecret)}},
	}
}

func callSecret(c *call) (starlark.Value, error) {
	m, ref, err := c.readObject(effect.Ref{
		APIVersion: "v1", Kind: "Secret", Name: c.str("name"), Namespace: c.str("namespace"),
	})
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%s is not there", ref)
	}
	key := c.str("key")
	data, _ := m["data"].(map[string]any)
	encoded, ok := data[key].(string)
	if !ok {
		return nil, fmt.Errorf("%s has no key %q", ref, clip(key))
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s: key %q is no base64", ref, clip(key))
	}
	return object.NewSecret(string(text)), nil
}

// openIdentity refuses an object that a secret names: names are in errors, logs and
// the status.
func openIdentity(obj starlark.Value) error {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		v := obj
		for _, key := range path {
			v = member(v, key)
		}
		if _, hidden := v.(*object.Secret); hidden {
			return fmt.Errorf("%s: a secret cannot name an object", strings.Join(path, "."))
		}
	}
	return nil
}

// member returns a field of a dict, struct or the like, nil when there is none.
func member(v starlark.Value, key string) starlark.Value {
	switch v := v.(type) {
	case starlark.Mapping:
		if e, found, err := v.Get(starlark.String(key)); found && err == nil {
			return e
		}
	case starlark.HasAttrs:
		if e, err := v.Attr(key); err == nil {
			return e
		}
	}
	return nil
}

func callReveal(c *call) (starlark.Value, error) {
	return starlark.String(c.arg("s").(*object.Secret).Reveal()), nil
}
