// Package check looks at a module tree without a cluster and tells all that is wrong
// or odd with it at once: what does not load, kinds and values that there are not, charts
// that do not render, and lines that do not do what they seem to.
package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// Options configures [Run].
type Options struct {
	// Tree is what is looked at.
	Tree *tree.Tree
	// OpenAPI is what a cluster serves, as `kubectl get --raw /openapi/v2` prints it;
	// nil: the kinds of Kubernetes itself are taken.
	OpenAPI []byte
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *release.Renderer
}

// Result is what [Run] found.
type Result struct {
	// Findings by place, each once.
	Findings []Finding
	// Modules and Hooks are how many there are, global ones among the hooks.
	Modules, Hooks int
	// Installs and Lookups are the grants that charts need and module.star does not name, by
	// module: lines of module(installs = […]) and module(lookup = […]).
	Installs, Lookups map[string][]string
}

// Count returns how many findings have a severity.
func (r Result) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

type checker struct {
	o       Options
	ctx     context.Context
	tree    *tree.Tree
	gen     *generation.Generation
	modules []*generation.Module
	files   map[string]*source // all .star files that parse, by path
	values  map[string]section // by module, "global" among them
	kinds   kinds
	table   table
	// subcharts are the crds/ of subcharts that are on, by module.
	subcharts map[string][]tree.File

	mu                sync.Mutex
	findings          []Finding
	custom            []customObject
	installs, lookups map[string][]string
}

// workers is how many charts are rendered at once.
const workers = 4

// Run checks a tree. It stops early, with what it has, only when ctx ends. All that is
// wrong with the tree is in the result; an error means that OpenAPI is no such document.
func Run(ctx context.Context, o Options) (Result, error) {
	c := &checker{o: o, ctx: ctx, tree: o.Tree, files: map[string]*source{}, values: map[string]section{}, kinds: newKinds(), table: newTable(), subcharts: map[string][]tree.File{}, installs: map[string][]string{}, lookups: map[string][]string{}}
	if o.OpenAPI != nil {
		var err error
		if c.kinds, err = servedKinds(o.OpenAPI); err != nil {
			return Result{}, err
		}
	}
	c.gen = generation.Load(ctx, generation.Options{
		Tree: o.Tree, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
		Log: func(string) builtins.Logger { return silent{} },
	})
	c.modules = c.gen.All()
	hooks := 0
	for _, m := range c.modules {
		hooks += len(m.Hooks)
		if m.Err != nil {
			c.addError("load", m.Name, m.Err)
		}
	}
	for _, p := range c.gen.Problems {
		c.addAt(Warning, "load", p.Module, c.keyed(p.Path, p.Msg), p.Msg, "")
	}
	for name, err := range graph.New(c.gen.Nodes()).Problems {
		if m := c.gen.Modules[name]; m.Err == nil {
			c.addAt(Error, "load", name, m.Decl.Pos, err.Error(), "")
		}
	}
	c.parse()
	c.libraries()
	c.sources()
	c.phases()
	c.contexts()
	c.grants()
	c.allValues()
	c.valuePaths()
	c.conflicts()
	c.charts()
	c.definitions()
	c.allKinds()
	c.examples()
	c.customFields()
	for _, s := range c.files {
		c.literalKinds(s)
	}
	c.leaveOut()
	return Result{Findings: c.sorted(), Modules: len(c.gen.Names), Hooks: hooks, Installs: c.installs, Lookups: c.lookups}, nil
}

// definitions looks at the files of crds/, and at kinds that module.star declares. Of several
// definitions of one name the first one counts.
func (c *checker) definitions() {
	type first struct {
		path string
		sum  [sha256.Size]byte
	}
	known := map[string]first{}
	for _, m := range c.modules {
		for _, f := range slices.Concat(m.Tree.CRDs, c.subcharts[m.Name]) {
			sums, err := release.CheckCRDs(f)
			if err != nil {
				c.addText(Error, "load", m.Name, err.Error())
			}
			c.schemas(m.Name, f)
			for name, sum := range sums {
				if other, ok := known[name]; !ok {
					known[name] = first{f.Path, sum}
				} else if other.sum != sum {
					c.addAt(Warning, "load", m.Name, f.Path, fmt.Sprintf("CustomResourceDefinition %s stands in %s too, and differs: that one is applied", name, other.path), "leave one of them out")
				}
			}
			c.kinds.addCRDs(f.Data)
		}
	}
}

// leaveOut drops the findings in modules that another instance has.
func (c *checker) leaveOut() {
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return slices.ContainsFunc(c.tree.Modules, func(m *tree.Module) bool {
			return c.gen.Elsewhere[m.Name] && (f.Module == m.Name || strings.HasPrefix(f.File, m.Dir+"/"))
		})
	})
}

// parse reads all .star files, those among them that nobody loads.
func (c *checker) parse() {
	// The tree is in memory: a folder that cannot be listed is not possible.
	_ = fs.WalkDir(c.tree.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".star") {
			return err
		}
		src, err := fs.ReadFile(c.tree.Files, p)
		if err != nil {
			return err
		}
		file, err := script.Parse(p, src)
		if err != nil {
			c.addError("load", "", err)
			return nil
		}
		c.files[p] = newSource(p, file)
		return nil
	})
}

// libraries loads the files of lib/ folders: what is wrong with one that nobody loads
// yet comes to light too.
func (c *checker) libraries() {
	for p := range c.files {
		if !slices.Contains(strings.Split(path.Dir(p), "/"), "lib") || strings.HasSuffix(p, "_test.star") {
			continue
		}
		if _, err := c.gen.Host.Load(c.ctx, p); err != nil {
			c.addError("load", "", err)
		}
	}
}

// moduleOf returns the name of the module whose folder holds the file, or "".
func (c *checker) moduleOf(file string) string {
	for _, m := range c.modules {
		if strings.HasPrefix(file, m.Tree.Dir+"/") {
			return m.Name
		}
	}
	return ""
}

// section is what is known of the values of a module.
type section struct {
	composer *values.Composer
	schema   *values.Schema
	config   *values.Schema
	// broken: no use looking further.
	broken bool
}

type silent struct{}

func (silent) Log(builtins.Level, string, []builtins.Field) {}
