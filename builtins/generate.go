package builtins

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/secrets"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Values that are made once, with an object: part(fill=, at_creation=).

// Generated says how a value is made.
type Generated struct {
	// How is "password": that many letters and digits; "key": the base64 of that many bytes; "token":
	// the same in the alphabet of URLs, without padding.
	How string
	N   int
}

// Fill is one value of an object that is made with it.
type Fill struct {
	// Key is a key of the Secret's data.
	Key string
	Generated
}

// maxGenerated bounds the values of [Generated].
const maxGenerated = 1024

func generateSpecs() []spec.Spec {
	row := func(name string, dflt, least int) spec.Spec {
		return declare("generate."+name, spec.InDesired, spec.NoEffect, func(c *call) (starlark.Value, error) {
			return &declared[Generated]{"generated", Generated{name, c.IntOr("n", dflt)}}, nil
		}, spec.Optional("n", spec.Int, strconv.Itoa(dflt)).Between(least, maxGenerated))
	}
	return []spec.Spec{
		row("password", 24, 8),
		row("key", 32, 16),
		row("token", 32, 16),
	}
}

// Make makes a value; random is where it comes from, nil: the system's own source.
func (g Generated) Make(random io.Reader) (string, error) {
	random = cmp.Or(random, rand.Reader)
	switch g.How {
	case "password":
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		return secrets.Letters(random, g.N, []rune(letters))
	case "token":
		b, err := secrets.Random(random, g.N)
		return base64.RawURLEncoding.EncodeToString(b), err
	}
	b, err := secrets.Random(random, g.N)
	return base64.StdEncoding.EncodeToString(b), err
}

// Made is the object of a part as it is written. Values that are made once are those of live, the object that is there,
// or new ones; fields that count at the creation alone are as in applied, what the controller has applied of live.
func (p *Part) Made(live, applied map[string]any, random io.Reader) (map[string]any, error) {
	obj := p.Object
	if live != nil {
		obj = p.with(applied)
	}
	for _, f := range p.Fill {
		at := []string{"data", f.Key}
		value, there := object.Get(live, at)
		if !there {
			made, err := f.Make(random)
			if err != nil {
				return nil, err
			}
			value = base64.StdEncoding.EncodeToString([]byte(made))
		}
		obj = object.With(obj, at, value)
	}
	return obj, nil
}

// with is the object with the fields that count at the creation alone as another one has them.
func (p *Part) with(other map[string]any) map[string]any {
	obj := p.Object
	for _, path := range p.AtCreation {
		if _, there := path.Get(obj); there {
			obj = object.With(obj, path.Resolve(obj), nil)
		}
		if v, there := path.Get(other); there && v != nil {
			obj = object.With(obj, path.Resolve(other), v)
		}
	}
	return obj
}

// atCreation reads at_creation=.
func atCreation(texts []string, obj map[string]any) (out []object.Path, err error) {
	for _, text := range texts {
		path, err := object.ParsePath(starlark.String(text))
		if err != nil {
			return nil, err
		}
		keys := path.Resolve(obj)
		for i, key := range keys {
			above, _ := object.Get(obj, keys[:i])
			if _, is := above.(map[string]any); key == "" || above != nil && !is || strings.HasSuffix(key, "]") {
				return nil, fmt.Errorf(`%q is no path of fields: write names with dots between them, as "spec.initContainers"; `+
					"of a list only the whole", spec.Clip(text))
			}
		}
		free := keys[0] != "metadata" || len(keys) > 2 && (keys[1] == "labels" || keys[1] == "annotations")
		if !free || keys[0] == "apiVersion" || keys[0] == "kind" {
			return nil, fmt.Errorf("%q always counts; of metadata only single labels and annotations may count at the "+
				"creation alone", spec.Clip(text))
		}
		out = append(out, path)
	}
	return out, nil
}

// fill reads fill=, sorted by key.
func (c *call) fill(obj map[string]any) ([]Fill, error) {
	dict, given := c.Arg("fill").(starlark.IterableMapping)
	if !given {
		return nil, nil
	}
	made := map[string]Generated{}
	for k, v := range starlark.Entries(dict) {
		path, _ := starlark.AsString(k)
		key, under := strings.CutPrefix(path, "data.")
		if !under || len(validation.IsConfigMapKey(key)) > 0 {
			return nil, fmt.Errorf(`%s is no key of a Secret's data; write "data.password"`, spec.Clip(k.String()))
		}
		g, is := v.(*declared[Generated])
		if !is {
			return nil, fmt.Errorf("%s: got %s, want generate.password() or the like", path, v.Type())
		}
		for _, field := range []string{"data", "stringData"} {
			if data, _ := obj[field].(map[string]any); data[key] != nil {
				return nil, fmt.Errorf("%s: the object has a value there; leave one of them out", path)
			}
		}
		made[key] = g.val
	}
	if len(made) > 0 && (obj["apiVersion"] != "v1" || obj["kind"] != "Secret") {
		return nil, errors.New("only a Secret has values that are made with it")
	}
	var out []Fill
	for _, key := range slices.Sorted(maps.Keys(made)) {
		out = append(out, Fill{key, made[key]})
	}
	return out, nil
}
