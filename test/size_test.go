package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostFields is how many fields of state the engine and its machines may have. A machine
// that needs more is two machines.
var mostFields = map[string]int{
	"runtime/engine":            73,
	"runtime/engine/adoption":   25,
	"runtime/engine/agenda":     10,
	"runtime/engine/causes":     25,
	"runtime/engine/finalizers": 25,
	"runtime/engine/layers":     25,
	"runtime/engine/lookups":    10,
	"runtime/engine/persist":    25,
	"runtime/engine/releases":   25,
	"runtime/engine/repairs":    12,
	"runtime/engine/sets":       25,
	"runtime/engine/standings":  15,
	"runtime/engine/subjects":   15,
	"runtime/engine/timers":     25,
	"runtime/engine/userconfig": 25,
	"runtime/engine/verdicts":   15,
	"runtime/engine/watches":    25,
}

// mostFieldsTogether bounds the sum. One package with all of it had 212.
const mostFieldsTogether = 213

func TestMachinesStaySmall(t *testing.T) {
	dirs, err := filepath.Glob("runtime/engine/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range dirs {
		dirs[i] = filepath.Dir(file)
	}
	together := 0
	for _, name := range append(slices.Compact(dirs), "runtime/engine") {
		n := fieldsOfState(t, name)
		together += n
		t.Logf("%s: %d fields of state", name, n)
		if most := mostFields[name]; n > most {
			t.Errorf("%s has %d fields of state, more than %d: drop some, or cut it in two", name, n, most)
		}
	}
	t.Logf("together: %d", together)
	if together > mostFieldsTogether {
		t.Errorf("the engine and its machines have %d fields of state, more than %d", together, mostFieldsTogether)
	}
}

// fieldsOfState counts the fields of all structs of a package that outlive one call: of types
// whose methods change them, and of all that those hold. Options, inputs and actions do not count.
func fieldsOfState(t *testing.T, dir string) (n int) {
	t.Helper()
	types, methods := declared(t, dir)
	state := map[string]bool{}
	var hold func(ast.Node)
	hold = func(node ast.Node) {
		ast.Inspect(node, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.FuncType, *ast.InterfaceType, *ast.SelectorExpr:
				return false
			case *ast.Field:
				hold(x.Type) // not its names
				return false
			case *ast.Ident:
				spec := types[x.Name]
				if spec == nil || state[x.Name] || methods[x.Name+".input"] || methods[x.Name+".action"] || x.Name == "Options" || x.Name == "Input" {
					return true
				}
				state[x.Name] = true
				if s, is := spec.Type.(*ast.StructType); is {
					n += s.Fields.NumFields()
				}
				hold(spec.Type)
			}
			return true
		})
	}
	for name, spec := range types {
		if methods["*"+name] {
			hold(spec.Name)
		}
	}
	return n
}

// declared returns the types of a package by name, and its methods: "T.method", and "*T" for a
// type with methods that may change it.
func declared(t *testing.T, dir string) (types map[string]*ast.TypeSpec, methods map[string]bool) {
	t.Helper()
	types, methods = map[string]*ast.TypeSpec{}, map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if spec, is := spec.(*ast.TypeSpec); is {
						types[spec.Name.Name] = spec
					}
				}
			case *ast.FuncDecl:
				if decl.Recv == nil {
					continue
				}
				of := decl.Recv.List[0].Type
				if star, is := of.(*ast.StarExpr); is {
					of = star.X
					if name, is := of.(*ast.Ident); is {
						methods["*"+name.Name] = true
					}
				}
				if name, is := of.(*ast.Ident); is {
					methods[name.Name+"."+decl.Name.Name] = true
				}
			}
		}
	}
	return types, methods
}

// mostOf bounds what the coordinator, runtime/engine without its machines, has of single things. These limits only fall.
var mostOf = []struct {
	pattern string
	most    int
	instead string
}{
	{`(?m)^func \(e \*Engine\)`, 58, "let a function decide on plain data, or put it into a machine; work on one module is a turn's"},
	{`(?m)^func \(t \*turn\)`, 98, "let a function decide on plain data, or put it into a machine"},
	{`\b[et]\.touch\(`, 10, "the module that an input is about is touched anyway; the others, where a machine says that they depend on it"},
	{`\bstandsBy\(\)`, 11, "a standby withholds what others ask for; let one place do so"},
	{`Controller [!=]= nil`, 8, "ask what the hook does, not what it is"},
	{`\blife [!=]= (leaving|up)\b`, 18, "ask the verdict"},
	{`[!=]= (e\.global|globalName)\b|\be\.global [!=]=|\.isGlobal\(\)`, 8, "let the global module be a module whose answers differ"},
}

// mostLines bounds the engine with its machines, without tests.
const mostLines = 12682

func TestTheEngineOnlyShrinks(t *testing.T) {
	var engine, all string
	for _, file := range glob(t, "runtime/engine/*.go", "runtime/engine/*/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := read(t, file)
		all += text
		if filepath.Dir(file) == "runtime/engine" {
			engine += lineComment.ReplaceAllString(text, "")
		}
	}
	for _, limit := range mostOf {
		if n := len(regexp.MustCompile(limit.pattern).FindAllString(engine, -1)); n > limit.most {
			t.Errorf("runtime/engine has %d of %s, more than %d: %s", n, limit.pattern, limit.most, limit.instead)
		} else if n < limit.most {
			t.Errorf("runtime/engine has %d of %s now: let its limit fall from %d", n, limit.pattern, limit.most)
		}
	}
	if n := strings.Count(all, "\n"); n > mostLines {
		t.Errorf("the engine and its machines have %d lines, more than %d", n, mostLines)
	}
}

var lineComment = regexp.MustCompile(`(?m)^\s*//.*$`)

// mostCode bounds the lines of all Go without tests, mostLong those of them with more than 120 columns. A change that
// adds takes something away: these limits only fall, and follow what is there closely.
const mostCode, mostLong = 166460, 1884

func TestAllOnlyShrinks(t *testing.T) {
	code, long := 0, 0
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.Lines(read(t, file)) {
			code++
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 120 {
				long++
			}
		}
	}
	for _, limit := range []struct {
		what            string
		has, most, near int
	}{{"lines", code, mostCode, 100}, {"lines over 120 columns", long, mostLong, 10}} {
		if limit.has > limit.most || limit.has < limit.most-limit.near {
			t.Errorf("Go without tests has %d %s; the limit is %d: take something away, or let it fall", limit.has, limit.what, limit.most)
		}
	}
}
