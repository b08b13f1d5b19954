package test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/starling-operator/starling/"

// layers is the import table of docs/architecture.md, leaves last. A package may import
// packages of the same layer where that is allowed, and of any layer below.
var layers = []struct {
	name     string
	packages []string
	// within lets packages of the layer import each other.
	within bool
}{
	{"commands", []string{"cmd/starling", "cmd/demo", "bench", "e2e", "e2e/balancer", "e2e/cluster", "e2e/faults", "e2e/hostile", "e2e/pages", "e2e/proxy", "test"}, true},
	{"commands of an instance", []string{"cmd/starling/operator", "cmd/starling/inspection"}, false},
	{"commands of a tree", []string{"cmd/starling/simulation", "cmd/starling/files"}, false},
	{"what commands ask", []string{"cmd/starling/instance"}, false},
	{"what commands share", []string{"cmd/starling/command", "cmd/starling/process", "cmd/starling/inspection/columns"}, true},
	{"what people have running", []string{"runtime/dev", "lsp", "tui"}, false},
	{"what commands do without a cluster", []string{"modules/fetch", "modules/format", "modules/scaffold", "modules/check", "modules/migrate", "modules/rbac"}, false},
	{"tests and sessions", []string{"runtime/testrunner", "runtime/repl"}, false},
	{"plans", []string{"runtime/plan"}, false},
	{"drivers", []string{"runtime/live", "runtime/sim"}, false},
	{"what drivers share", []string{"runtime/executor"}, false},
	{"parts of drivers", []string{"runtime/watch", "runtime/cluster", "runtime/codec", "runtime/drift", "runtime/sim/apitest", "runtime/admin", "runtime/webhook", "runtime/httpclient", "runtime/httpserver", "runtime/httplimit", "runtime/inputs", "runtime/logs", "runtime/metrics", "runtime/modules", "runtime/record", "runtime/reload", "runtime/replicas", "runtime/tlsfiles", "runtime/tracing", "runtime/sim/store", "runtime/sim/rest", "runtime/sim/workloads", "modules/release"}, true},
	{"engine", []string{"runtime/engine"}, false},
	{"machines of the engine", []string{"runtime/engine/adoption", "runtime/engine/agenda", "runtime/engine/causes", "runtime/engine/finalizers", "runtime/engine/layers", "runtime/engine/lookups", "runtime/engine/persist", "runtime/engine/releases", "runtime/engine/repairs", "runtime/engine/sets", "runtime/engine/standings", "runtime/engine/subjects", "runtime/engine/timers", "runtime/engine/userconfig", "runtime/engine/verdicts", "runtime/engine/watches"}, false},
	{"what the engine decides with", []string{"runtime/lane", "runtime/hook", "runtime/generation"}, true},
	{"charts", []string{"modules/chart"}, false},
	{"modules", []string{"modules/tree", "modules/graph", "modules/reads", "modules/values", "modules/status"}, false},
	{"scripts", []string{"runtime/script", "runtime/condition"}, false},
	{"docs of builtins", []string{"builtins/docs"}, false},
	{"builtins", []string{"builtins"}, false},
	{"families of builtins", []string{"builtins/crd", "builtins/data", "builtins/jq", "builtins/secrets"}, false},
	{"declarations of builtins", []string{"builtins/spec"}, false},
	{"children of parents", []string{"runtime/apply", "runtime/reconcile"}, false},
	{"leaves", []string{"examples/recipes", "runtime/bounded", "runtime/definition", "runtime/effect", "runtime/kstatus", "runtime/object", "runtime/pki", "runtime/schedule", "modules/helm", "modules/migrate/jq", "modules/release/owned", "stdlib", "lsp/text"}, false},
	{"words of messages", []string{"runtime/message", "runtime/wording"}, false},
}

// never lists what must not be reached from a package's own imports, whatever the
// layer: the engine decides, it does no I/O.
var never = map[string][]string{
	"runtime/engine":            {"k8s.io/client-go/", "net/http", "os", "math/rand"},
	"runtime/engine/agenda":     {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/causes":     {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/finalizers": {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/layers":     {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/lookups":    {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/persist":    {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/releases":   {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/repairs":    {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/sets":       {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/standings":  {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/subjects":   {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/timers":     {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/userconfig": {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/verdicts":   {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/engine/watches":    {"k8s.io/", "net/http", "os", "math/rand"},
	"runtime/kstatus":           {"k8s.io/", "time", "os"},
	"runtime/lane":              {"k8s.io/", "os", "math/rand"},
	"runtime/reconcile":         {"k8s.io/", "time", "os", "math/rand"},
	"builtins":                  {"k8s.io/client-go/", "net/http", "os"},
	"builtins/crd":              {"k8s.io/client-go/", "net/http", "os", "math/rand"},
	"builtins/data":             {"k8s.io/", "net/http", "os", "math/rand"},
	"builtins/jq":               {"k8s.io/", "net/http", "os", "math/rand"},
	"builtins/secrets":          {"k8s.io/client-go/", "net/http", "os", "math/rand"},
	"builtins/spec":             {"k8s.io/client-go/", "net/http", "os", "math/rand"},
	"modules/values":            {"k8s.io/client-go/", "os", "math/rand"},
	"modules/graph":             {"k8s.io/", "os"},
	"modules/chart":             {"k8s.io/client-go/dynamic", "net/http"},
	"modules/release/owned":     {"k8s.io/client-go/", "net/http", "os"},
}

// TestViewsChangeNothing holds methods of ground and of View, by which the engine decides and people are shown, to what
// they say: they set nothing of their receiver, and call none of the methods by which turns and the engine work.
func TestViewsChangeNothing(t *testing.T) {
	reads := map[string]bool{"ground": true, "View": true}
	_, methods := declared(t, "runtime/engine")
	for _, file := range glob(t, "runtime/engine/*.go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, is := decl.(*ast.FuncDecl)
			if !is || fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 {
				continue
			}
			of, is := fn.Recv.List[0].Type.(*ast.StarExpr)
			if !is || !reads[of.X.(*ast.Ident).Name] {
				continue
			}
			receiver := fn.Recv.List[0].Names[0].Name
			ofReceiver := func(x ast.Expr) (name string) {
				if sel, is := x.(*ast.SelectorExpr); is {
					if id, is := sel.X.(*ast.Ident); is && id.Name == receiver {
						return sel.Sel.Name
					}
				}
				return ""
			}
			ast.Inspect(fn.Body, func(x ast.Node) bool {
				var set []ast.Expr
				switch x := x.(type) {
				case *ast.AssignStmt:
					set = x.Lhs
				case *ast.IncDecStmt:
					set = []ast.Expr{x.X}
				case *ast.CallExpr:
					if name := ofReceiver(x.Fun); methods["turn."+name] || methods["Engine."+name] {
						t.Errorf("%s: %s calls %s, which works", file, fn.Name.Name, name)
					}
				}
				for _, x := range set {
					if name := ofReceiver(x); name != "" {
						t.Errorf("%s: %s sets %s", file, fn.Name.Name, name)
					}
				}
				return true
			})
		}
	}
}

type listed struct {
	ImportPath string
	Imports    []string
}

func TestImportsFollowTheTable(t *testing.T) {
	layerOf := map[string]int{}
	for i, l := range layers {
		for _, p := range l.packages {
			layerOf[p] = i
		}
	}
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, modulePath)
		from, known := layerOf[name]
		if !known {
			t.Errorf("package %s is in no layer; put it into the table of this test and of docs/architecture.md", name)
			continue
		}
		for _, imported := range p.Imports {
			for _, banned := range never[name] {
				if imported == banned || strings.HasSuffix(banned, "/") && strings.HasPrefix(imported, banned) || banned == "math/rand" && imported == "math/rand/v2" {
					t.Errorf("%s imports %s, which it must not", name, imported)
				}
			}
			own, ours := strings.CutPrefix(imported, modulePath)
			if !ours {
				continue
			}
			to, known := layerOf[own]
			switch {
			case !known:
				t.Errorf("%s imports %s, which is in no layer", name, own)
			case to < from, to == from && !layers[from].within:
				t.Errorf("%s (%s) imports %s (%s): the table allows only what stands below", name, layers[from].name, own, layers[to].name)
			}
		}
	}
}

// Another Helm is a change of one small package. Measurements beside Helm need its own client.
func TestOnePackageImportsHelm(t *testing.T) {
	for _, p := range listPackages(t) {
		name := strings.TrimPrefix(p.ImportPath, modulePath)
		if name == "modules/helm" || name == "bench" {
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "helm.sh/helm/") {
				t.Errorf("%s imports %s: only modules/helm may", name, imported)
			}
		}
	}
	files, err := filepath.Glob("modules/helm/*.go")
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if err != nil || len(files) > 8 {
		t.Errorf("modules/helm has %d files, and may have 8: %v", len(files), err)
	}
}

func TestFoldersThatShadowTheStandardLibraryHoldNoGo(t *testing.T) {
	files, err := filepath.Glob("runtime/*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("runtime/ holds %v: a package runtime would hide the standard library's", files)
	}
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	var all []listed
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return all
}
