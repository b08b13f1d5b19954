// Package check looks at a module tree without a cluster and tells all that is wrong
// or odd with it at once: what does not load, kinds and values that there are not, charts
// that do not render, and lines that do not do what they seem to.
package check

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/syntax"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
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
	Renderer *chart.Renderer
	// Cache is that of earlier checks of the same tree, which makes this one faster; nil: there were none.
	Cache *Cache
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
	cache   *Cache
	tree    *tree.Tree
	gen     *generation.Generation
	modules []*generation.Module
	byDir   map[string]string  // names of modules, by their folders
	files   map[string]*source // all .star files that parse, by path
	values  map[string]section // by module, "global" among them
	kinds   kinds
	table   table
	// own are the kinds that the tree defines; served is what charts see of the cluster without them, caps with them.
	own          []schema.GroupVersionKind
	served, caps *helm.Capabilities
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
	if o.Cache == nil {
		o.Cache = NewCache()
	}
	c := &checker{o: o, ctx: ctx, cache: o.Cache, tree: o.Tree, byDir: map[string]string{}, files: map[string]*source{}, values: map[string]section{}, table: o.Cache.table(), subcharts: map[string][]tree.File{}, installs: map[string][]string{}, lookups: map[string][]string{}}
	if o.OpenAPI != nil {
		var err error
		if c.kinds, c.served, err = servedKinds(o.OpenAPI); err != nil {
			return Result{}, err
		}
	} else {
		c.kinds, c.served = o.Cache.kinds().clone(), o.Cache.served()
	}
	c.cache.begin()
	c.gen = generation.Load(ctx, generation.Options{
		Tree: o.Tree, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
		Previous: c.cache.gen, Cache: c.cache.programs,
	})
	c.modules = c.gen.All()
	hooks := 0
	for _, m := range c.modules {
		c.byDir[m.Tree.Dir] = m.Name
	}
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
	c.powers()
	c.allKinds()
	c.examples()
	c.customFields()
	for _, s := range c.files {
		c.literalKinds(s)
		c.literalFields(s)
		c.statements(s)
	}
	c.leaveOut()
	if ctx.Err() == nil { // else modules may lack what was not loaded in time
		c.cache.gen = c.gen
	}
	return Result{Findings: c.sorted(), Modules: len(c.gen.Names), Hooks: hooks, Installs: c.installs, Lookups: c.lookups}, nil
}

// definitions are what is known of one file with CustomResourceDefinitions.
type definitions struct {
	sums     map[string][sha256.Size]byte
	err      error
	problems []string
	kinds    []schema.GroupVersionKind
}

func (c *checker) definitionsOf(f tree.File) definitions {
	return c.cache.crds.of(keyOf([]tree.File{f}), func() (definitions, bool) {
		sums, err := chart.CheckCRDs(f)
		d := definitions{sums: sums, err: err, problems: schemasOf(c.ctx, f), kinds: kindsOf(f.Data)}
		return d, c.ctx.Err() == nil
	})
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
			of := c.definitionsOf(f)
			if of.err != nil {
				c.addText(Error, "load", m.Name, of.err.Error())
			}
			for _, problem := range of.problems {
				c.addAt(Error, "load", m.Name, f.Path, problem, "")
			}
			if len(of.sums) > 0 && !strings.Contains(f.Path, ".star:") { // what crd(…) declares stands in module.star
				names := message.Cut(strings.Join(slices.Sorted(maps.Keys(of.sums)), ", "), 1000)
				c.addAt(Note, "powers", m.Name, f.Path, "applies CustomResourceDefinition "+names+", by which all objects of that kind go", "")
			}
			for name, sum := range of.sums {
				if other, ok := known[name]; !ok {
					known[name] = first{f.Path, sum}
				} else if other.sum != sum {
					c.addAt(Warning, "load", m.Name, f.Path, fmt.Sprintf("CustomResourceDefinition %s stands in %s too, and differs: the one that is there stays, else the first that is applied", name, other.path), "leave one of them out")
				}
			}
		}
	}
}

// leaveOut drops the findings in modules that another instance has, and what loading has told of.
func (c *checker) leaveOut() {
	type line struct {
		file string
		line int
	}
	stopped := map[line]bool{}
	for _, f := range c.findings {
		if f.Check == "load" {
			stopped[line{f.File, f.Line}] = true
		}
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return (f.Check == "names" || f.Check == "loads") && (stopped[line{f.File, f.Line}] || stopped[line{f.File, f.call}])
	})
	if slices.ContainsFunc(c.modules, c.lostKinds) {
		c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool { return f.Check == "kinds" && f.Severity == Note })
	}
	c.findings = slices.DeleteFunc(c.findings, func(f Finding) bool {
		return slices.ContainsFunc(c.tree.Modules, func(m *tree.Module) bool {
			return c.gen.Elsewhere[m.Name] && (f.Module == m.Name || strings.HasPrefix(f.File, m.Dir+"/"))
		})
	})
}

// lostKinds says that a module.star would declare kinds, and does not load: nobody knows which ones there would be.
func (c *checker) lostKinds(m *generation.Module) bool {
	file := path.Join(m.Tree.Dir, "module.star")
	if m.Err == nil || !slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Check == "load" && f.File == file }) {
		return false
	}
	s, declares := c.files[file], false
	if s == nil {
		return true
	}
	syntax.Walk(s.file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		declares = declares || ok && s.builtin(call.Fn) == "crd"
		return !declares
	})
	return declares
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
		file := c.cache.parse(p, src)
		if file.err != nil {
			c.addError("load", "", file.err)
			return nil
		}
		c.files[p] = file.source
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
	if dir, _, in := strings.Cut(file, "/"); in {
		return c.byDir[dir]
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
