// Package crd makes a CustomResourceDefinition from a short schema: crd(…) in module.star.
package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
)

// Definition is one call of crd().
type Definition struct {
	// Name of the definition: "applications.example.org".
	Name string
	// Data is the CustomResourceDefinition in JSON: the same call makes the same bytes.
	Data []byte
	Pos  string // "file:line" of the call
}

// maxCRD is the size of one definition: about what the API server takes.
const maxCRD = 1 << 20

var (
	kindPattern    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	// fieldPath is a path that says where in the schema a column is found.
	fieldPath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)
)

// Params are those of crd(…).
func Params() []spec.Param {
	return []spec.Param{
		spec.Required("api_version", spec.String), spec.Required("kind", spec.String), spec.Required("spec", spec.Any),
		spec.Keyword("status", spec.Any, "None"), spec.Keyword("columns", spec.Dict, "{}"), spec.Keyword("rules", spec.Dict, "{}"),
		spec.Keyword("versions", spec.Dict, "{}"), spec.Keyword("scope", spec.String, `"Namespaced"`),
		spec.Keyword("plural", spec.String, "None"), spec.Keyword("short_names", spec.Strings, "[]"),
		spec.Keyword("categories", spec.Strings, "[]"), spec.Keyword("doc", spec.String, "None"),
	}
}

// Define makes the CustomResourceDefinition of a call.
func Define(c *spec.Call) (d Definition, err error) {
	apiVersion, kind := c.Str("api_version"), c.Str("kind")
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok || !versionPattern.MatchString(version) {
		return d, fmt.Errorf(`api_version: %q is none for a new kind; write a group and a version, "example.org/v1"`, spec.Clip(apiVersion))
	}
	if err := crdGroup(group); err != nil {
		return d, fmt.Errorf("api_version: %w", err)
	}
	if !kindPattern.MatchString(kind) || len(kind) > 63 {
		return d, fmt.Errorf(`kind: %q is none; write it as in manifests, "Application"`, spec.Clip(kind))
	}
	names, err := crdNames(c, kind)
	if err != nil {
		return d, err
	}
	scope := c.StrOr("scope", "Namespaced")
	if scope != "Namespaced" && scope != "Cluster" {
		return d, fmt.Errorf(`scope: got %q, want "Namespaced" or "Cluster"`, spec.Clip(scope))
	}
	stored, err := crdVersion(version, c.Arg)
	if err != nil {
		return d, err
	}
	stored["storage"] = true
	if doc := c.Str("doc"); doc != "" {
		stored["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["description"] = doc
	}
	others, err := otherVersions(c, version)
	if err != nil {
		return d, fmt.Errorf("versions: %w", err)
	}
	d.Name, d.Pos = names["plural"].(string)+"."+group, c.Pos()
	d.Data, err = json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": d.Name},
		"spec": map[string]any{"group": group, "names": names, "scope": scope, "versions": append([]any{stored}, others...)},
	})
	if err == nil && len(d.Data) > maxCRD {
		err = fmt.Errorf("%s has %d bytes, more than the %d of a definition", d.Name, len(d.Data), maxCRD)
	}
	return d, err
}

// crdGroup refuses groups that no kind of a module can be of.
func crdGroup(group string) error {
	labels := strings.Split(group, ".")
	if len(labels) < 2 || len(group) > 190 {
		return fmt.Errorf(`%q is no group for a new kind; write a domain of yours, "example.org"`, spec.Clip(group))
	}
	for _, label := range labels {
		if err := spec.DNSLabel(label, 63); err != nil {
			return err
		}
	}
	if strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io") {
		return fmt.Errorf("%s is a group of Kubernetes itself; write a domain of yours", group)
	}
	return nil
}

func crdNames(c *spec.Call, kind string) (map[string]any, error) {
	plural, singular := c.StrOr("plural", Plural(kind)), strings.ToLower(kind)
	if err := spec.DNSLabel(plural, 63); err != nil {
		return nil, fmt.Errorf("plural: %w", err)
	}
	names := map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": singular}
	for _, list := range []struct{ param, key string }{{"short_names", "shortNames"}, {"categories", "categories"}} {
		var out []any
		for _, name := range c.Strings(list.param) {
			if err := spec.DNSLabel(name, 63); err != nil {
				return nil, fmt.Errorf("%s: %w", list.param, err)
			}
			out = append(out, name)
		}
		if out != nil {
			names[list.key] = out
		}
	}
	return names, nil
}

// Plural is what a kind is called in paths, as far as one can tell: "applications".
func Plural(kind string) string {
	name := strings.ToLower(kind)
	ends := func(with ...string) bool {
		return slices.ContainsFunc(with, func(end string) bool { return strings.HasSuffix(name, end) })
	}
	switch {
	case ends("y") && !ends("ay", "ey", "oy", "uy"):
		return strings.TrimSuffix(name, "y") + "ies"
	case ends("s", "x", "ch", "sh"):
		return name + "es"
	}
	return name + "s"
}

// versionKeys are those of an element of crd(versions=).
var versionKeys = []string{"spec", "status", "columns", "rules", "served", "deprecated"}

// otherVersions reads versions=, in the order of their names.
func otherVersions(c *spec.Call, stored string) (out []any, err error) {
	given, err := dictOf(c.Arg("versions"))
	if err != nil {
		return nil, err
	}
	byName := map[string]any{}
	var names []string
	for _, item := range given {
		name, args := item.key, map[string]starlark.Value{}
		if name == stored || !versionPattern.MatchString(name) {
			return nil, fmt.Errorf(`%q is no version beside %s; write "v1beta1"`, spec.Clip(name), stored)
		}
		fields, err := dictOf(item.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range fields {
			if !slices.Contains(versionKeys, f.key) {
				return nil, fmt.Errorf("%s: it takes no %q%s", name, spec.Clip(f.key), didYouMean(f.key, versionKeys))
			}
			args[f.key] = f.value
		}
		if args["spec"] == nil {
			return nil, fmt.Errorf("%s: spec is missing", name)
		}
		v, err := crdVersion(name, func(param string) starlark.Value { return args[param] })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		switch served := args["served"].(type) {
		case nil:
		case starlark.Bool:
			v["served"] = bool(served)
		default:
			return nil, fmt.Errorf("%s: served: got %s, want bool", name, served.Type())
		}
		switch text := args["deprecated"].(type) {
		case nil:
		case starlark.String:
			v["deprecated"], v["deprecationWarning"] = true, string(text)
		default:
			return nil, fmt.Errorf("%s: deprecated: got %s, want string", name, text.Type())
		}
		byName[name] = v
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, byName[name])
	}
	return out, nil
}

// crdVersion makes one version of its arguments.
func crdVersion(name string, arg func(string) starlark.Value) (map[string]any, error) {
	m := &schemaMaker{}
	spec, required, err := m.schema("spec", arg("spec"), 0)
	if err != nil {
		return nil, err
	}
	if spec["type"] != "object" {
		return nil, errors.New("spec: it holds no fields; write a dict of them")
	}
	root := map[string]any{"type": "object"}
	properties := map[string]any{"spec": spec}
	if spec["required"] != nil || required {
		root["required"] = []any{"spec"}
	} else if spec["default"] == nil && spec["x-kubernetes-validations"] == nil && hasDefaults(spec) {
		// Else an object without spec would get no defaults.
		spec["default"] = map[string]any{}
	}
	v := map[string]any{"name": name, "served": true, "storage": false}
	status, err := m.status(arg("status"))
	if err != nil {
		return nil, err
	}
	if status != nil {
		properties["status"] = status
		v["subresources"] = map[string]any{"status": map[string]any{}}
	}
	root["properties"] = properties
	if rules, err := celRules(arg("rules")); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	} else if rules != nil {
		root["x-kubernetes-validations"] = rules
	}
	columns, err := columnsOf(arg("columns"), root)
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	if columns != nil {
		v["additionalPrinterColumns"] = columns
	}
	v["schema"] = map[string]any{"openAPIV3Schema": root}
	return v, nil
}

// columnsOf reads columns=. Age comes last, as it does where a definition names no columns.
func columnsOf(v starlark.Value, root map[string]any) (out []any, err error) {
	given, err := dictOf(v)
	if err != nil || len(given) == 0 {
		return nil, err
	}
	age := false
	for _, item := range given {
		at, is := starlark.AsString(item.value)
		if !is || !strings.HasPrefix(at, ".") || message.Line(at) != at {
			return nil, fmt.Errorf(`%s: got %s, want a path, ".spec.image"`, spec.Clip(item.key), spec.Clip(item.value.String()))
		}
		typ, err := columnType(at, root)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Clip(item.key), err)
		}
		age = age || item.key == "Age"
		out = append(out, map[string]any{"name": item.key, "type": typ, "jsonPath": at})
	}
	if !age {
		out = append(out, map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
	}
	return out, nil
}

// columnType says of which type a column is; one whose path is no plain one is text.
func columnType(at string, root map[string]any) (string, error) {
	switch {
	case at == ".metadata.creationTimestamp" || at == ".metadata.deletionTimestamp":
		return "date", nil
	case !fieldPath.MatchString(at) || strings.HasPrefix(at, ".metadata."):
		return "string", nil
	}
	schema := root
	for _, name := range strings.Split(at[1:], ".") {
		properties, _ := schema["properties"].(map[string]any)
		next, is := properties[name].(map[string]any)
		switch {
		case is:
			schema = next
			continue
		case schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] != nil:
			return "string", nil
		}
		return "", fmt.Errorf("the schema has no %s%s", at, didYouMean(name, slices.Sorted(maps.Keys(properties))))
	}
	switch {
	case schema["type"] == "integer", schema["type"] == "number", schema["type"] == "boolean":
		return schema["type"].(string), nil
	}
	return "string", nil
}
