package check

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"sync"

	"go.starlark.net/syntax"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// Cache keeps what one check of a tree has in common with the next: a check with it tells the same as one
// without, and does again only what the changes of files between the two concern. All that it keeps is found
// by the whole of what it was made of. It serves one check at a time.
type Cache struct {
	gen      *generation.Generation
	programs *script.Cache
	checks   int // since programs was empty
	builtins func() *store.Builtins
	kinds    func() kinds
	served   func() *helm.Capabilities
	table    func() table

	sources  memo[digest, parsed]
	alone    memo[aloneKey, []Finding]
	charts   memo[digest, rendered]
	crds     memo[digest, definitions]
	examples memo[exampleKey, []Finding]
	fields   memo[digest, customFaults]
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{
		programs: script.NewCache(), builtins: sync.OnceValue(store.NewBuiltins),
		kinds: sync.OnceValue(newKinds), table: sync.OnceValue(newTable),
	}
	c.served = sync.OnceValue(func() *helm.Capabilities {
		var kinds []schema.GroupVersionKind
		for _, k := range store.New(store.Options{Builtins: c.builtins()}).Kinds() {
			kinds = append(kinds, k.GVK())
		}
		return helm.WithKinds(newest(), kinds...)
	})
	return c
}

// maxChecks is for how many checks compiled programs are kept: each state of a file that somebody writes is one, and
// most are never seen again. A module that stays as it is needs none: it is taken from the check before.
const maxChecks = 200

// begin drops what the last check has not asked for.
func (c *Cache) begin() {
	if c.checks++; c.checks > maxChecks {
		c.programs, c.checks = script.NewCache(), 0
	}
	c.sources.next()
	c.alone.next()
	c.charts.next()
	c.crds.next()
	c.examples.next()
	c.fields.next()
}

// Generation is what the last check that came to its end has loaded; nil before the first.
func (c *Cache) Generation() *generation.Generation { return c.gen }

// memo holds results by what they were made of. It is safe for concurrent use.
type memo[K comparable, V any] struct {
	mu          sync.Mutex
	now, before map[K]V
}

// next begins another check.
func (m *memo[K, V]) next() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.now = m.now, map[K]V{}
}

// of returns what a key has, or makes it. A result that may be another next time, because the check was
// stopped, is not kept.
func (m *memo[K, V]) of(key K, make func() (result V, keep bool)) V {
	m.mu.Lock()
	v, known := m.now[key]
	if !known {
		if v, known = m.before[key]; known {
			m.now[key] = v
		}
	}
	m.mu.Unlock()
	if known {
		return v
	}
	v, keep := make()
	if keep {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now[key] = v
	}
	return v
}

// digest stands for all parts of a key.
type digest [sha256.Size]byte

// keyOf is the digest of some parts: texts, bytes, files, and plain data in its JSON.
func keyOf(parts ...any) digest {
	h := sha256.New()
	for _, p := range parts {
		switch p := p.(type) {
		case []byte:
			sized(h, p)
		case string:
			sized(h, []byte(p))
		case []tree.File:
			fmt.Fprintf(h, "%d files:", len(p))
			for _, f := range p {
				sized(h, []byte(f.Path))
				sized(h, f.Data)
			}
		default:
			data, err := json.Marshal(p)
			if err != nil { // infinite numbers, which no YAML of a tree keeps; its text tells them apart as well
				data = fmt.Appendf(nil, "%#v", p)
			}
			sized(h, data)
		}
	}
	return digest(h.Sum(nil))
}

func sized(h hash.Hash, data []byte) {
	fmt.Fprintf(h, "%d:", len(data))
	h.Write(data)
}

// parsed is a .star file as it was read, or why it cannot be.
type parsed struct {
	source *source
	err    error
}

func (c *Cache) parse(path string, src []byte) parsed {
	return c.sources.of(keyOf(path, src), func() (parsed, bool) {
		file, err := script.Parse(path, src)
		if err != nil {
			return parsed{err: err}, true
		}
		return parsed{source: newSource(path, file)}, true
	})
}

// names is a host that knows the builtins, and loads nothing.
var names = sync.OnceValue(func() *script.Host { return script.New(script.Options{}) })

// File returns what keeps a .star file from being loaded and is seen without running it: syntax, unknown names. [Run]
// tells the same of it, among all else. The syntax tree, whose names are bound, is nil when there is none.
func File(path string, src []byte) (*syntax.File, []Finding) {
	file, err := names().Resolve(path, src)
	if at, ok := errors.AsType[*script.Error](err); ok {
		return file, findingsOf("load", at)
	}
	return file, nil
}

// aloneKey is what the findings in a file by itself hang on.
type aloneKey struct {
	source *source // the same while the file is
	module string
}

// exampleKey is what the findings in the examples of a module hang on.
type exampleKey struct {
	module *generation.Module // the same while nothing of it changes
	rest   digest
}

// clone returns kinds to which those of a tree may be added.
func (k kinds) clone() kinds {
	return kinds{known: maps.Clone(k.known), gone: k.gone, groups: maps.Clone(k.groups), complete: k.complete}
}
