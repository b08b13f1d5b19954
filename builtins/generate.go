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
)

// Values that are made once, with an object: part(fill=).

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
