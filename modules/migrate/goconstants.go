package migrate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// goFolders are the folders of a module that hold Go: configs name constants that stand in other
// files of their package, or in other packages of the module. nil has none.
type goFolders struct {
	files  map[string]oldFile // of the module, by path
	read   map[string]*goPackage
	within map[string][]string // the files of Go in each folder; nil until they are asked for
	named  map[string]string   // the folders of modules of Go, by name
}

// index looks at the names of all files, once.
func (g *goFolders) index() {
	if g.within != nil {
		return
	}
	g.within, g.named = map[string][]string{}, map[string]string{}
	for _, rel := range slices.Sorted(maps.Keys(g.files)) {
		dir, data := path.Dir(rel), g.files[rel].data
		switch {
		case path.Base(rel) == "go.mod":
			g.named[goModule(data)] = dir
		case path.Ext(rel) == ".go" && !strings.HasSuffix(rel, "_test.go") && len(data) <= maxSource:
			g.within[dir] = append(g.within[dir], rel)
		}
	}
}

// goPackage holds the constants of one folder.
type goPackage struct {
	constants map[string]goConstant
}

// goConstant is a constant, or a variable with one value.
type goConstant struct {
	value ast.Expr
	at    *goFile
}

// goFile says what the names in one file stand for.
type goFile struct {
	of      *goPackage
	imports map[string]string // paths of packages by the names that the file has for them
	dots    []string          // packages whose names stand there without one
}

// folder returns the package in a folder of the module.
func (g *goFolders) folder(dir string) *goPackage {
	if p := g.read[dir]; p != nil {
		return p
	}
	p := &goPackage{map[string]goConstant{}}
	g.read[dir] = p
	g.index()
	for _, rel := range g.within[dir] {
		if file, err := parser.ParseFile(token.NewFileSet(), "", g.files[rel].data, parser.SkipObjectResolution); err == nil {
			p.add(file)
		}
	}
	return p
}

// imported returns the package of the module that a path of an import names; nil for one that is
// not in the module.
func (g *goFolders) imported(importPath string) *goPackage {
	if g == nil || importPath == "" {
		return nil
	}
	g.index()
	for name := importPath; name != "."; name = path.Dir(name) {
		if dir, is := g.named[name]; is {
			return g.folder(path.Join(dir, strings.TrimPrefix(importPath, name)))
		}
	}
	for dir := importPath; ; {
		if g.within[dir] != nil {
			return g.folder(dir)
		}
		_, below, is := strings.Cut(dir, "/")
		if !is {
			return nil
		}
		dir = below
	}
}

// goModule is the name of the module that a go.mod is of.
func goModule(data []byte) string {
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "module" {
			return fields[1]
		}
	}
	return ""
}

// add takes the constants of a file, and returns what its names stand for.
func (p *goPackage) add(file *ast.File) *goFile {
	f := &goFile{of: p, imports: map[string]string{}}
	for _, i := range file.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		switch {
		case err != nil:
		case i.Name == nil:
			f.imports[path.Base(of)] = of
		case i.Name.Name == ".":
			f.dots = append(f.dots, of)
		default:
			f.imports[i.Name.Name] = of
		}
	}
	for _, d := range file.Decls {
		decl, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, s := range decl.Specs {
			v, is := s.(*ast.ValueSpec)
			for i := 0; is && i < len(v.Names) && len(v.Values) == len(v.Names); i++ {
				p.constants[v.Names[i].Name] = goConstant{v.Values[i], f}
			}
		}
	}
	return f
}

// constant finds a constant by its name in the file that is read, or in one of its dot imports.
func (r *goReader) constant(name string) (goConstant, bool) {
	c, is := r.at.of.constants[name]
	for i := 0; !is && i < len(r.at.dots); i++ {
		if p := r.folders.imported(r.at.dots[i]); p != nil {
			c, is = p.constants[name]
		}
	}
	return c, is
}

// constantValue is the value of a constant, whose names are those of the file where it stands.
func (r *goReader) constantValue(c goConstant, field string) any {
	at := r.at
	defer func() { r.at = at }()
	r.at = c.at
	return r.value(c.value, field)
}
