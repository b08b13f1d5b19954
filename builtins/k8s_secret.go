package builtins

import (
	"encoding/base64"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

func secretSpecs() []spec.Spec {
	return []spec.Spec{declare("k8s.secret", spec.InRun|spec.InReview, spec.Reads, callSecret,
		spec.Required("name", spec.String), spec.Required("key", spec.String), spec.Optional("namespace", spec.String, "None"))}
}

func callSecret(c *call) (starlark.Value, error) {
	m, ref, err := c.readObject(effect.Ref{
		APIVersion: "v1", Kind: "Secret", Name: c.Str("name"), Namespace: c.Str("namespace"),
	})
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%s is not there", ref)
	}
	key := c.Str("key")
	data, _ := m["data"].(map[string]any)
	encoded, ok := data[key].(string)
	if !ok {
		return nil, fmt.Errorf("%s has no key %q", ref, spec.Clip(key))
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s: key %q is no base64", ref, spec.Clip(key))
	}
	return object.NewSecret(string(text)), nil
}

// openIdentity refuses an object that a secret names: names are in errors, logs and
// the status.
func openIdentity(obj starlark.Value) error {
	for _, path := range [][]string{{"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		v := obj
		for _, key := range path {
			v = spec.Member(v, key)
		}
		if _, hidden := v.(*object.Secret); hidden {
			return fmt.Errorf("%s: a secret cannot name an object", strings.Join(path, "."))
		}
	}
	return nil
}
