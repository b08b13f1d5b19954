package script

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

// ofModule is a host of a module that reads its own files.
func ofModule(t *testing.T, code string, files map[string]string) *Host {
	t.Helper()
	all := map[string]string{"web/templates/a.txt": "hello", "web/crds/b.yaml": "b", "web/crds/a.yaml": "a", "web/crds/sub/c.yaml": "c", "shop/a.txt": "shop's",
		"web/hooks/a.star": code}
	maps.Copy(all, files)
	return newFixture(t, all, func(o *Options) {
		o.Predeclared = builtins.Predeclared()
		o.Context = func(path string) *builtins.Context {
			return &builtins.Context{Phase: spec.InLoad, File: &builtins.File{Path: path, Role: builtins.RoleHooks}}
		}
	}).Host
}

func TestFilesOfTheModule(t *testing.T) {
	h := ofModule(t, "load(\"../lib/x.star\", \"text\")\na = module.file(\"templates/a.txt\")\nall = module.files(\"crds/*.yaml\")\nnone = module.files(\"no/*\")\n",
		map[string]string{"web/lib/x.star": "text = module.file(\"./templates/a.txt\".removeprefix(\"./\"))\n"})
	globals, err := h.Load(t.Context(), "web/hooks/a.star")
	if err != nil {
		t.Fatal(err)
	}
	if got := globals["a"].String() + globals["all"].String() + globals["none"].String(); got != `"hello"{"crds/a.yaml": "a", "crds/b.yaml": "b"}{}` {
		t.Errorf("got %s", got)
	}
	sources, err := h.Sources("web/hooks/a.star")
	want := []string{"web/crds/a.yaml", "web/crds/b.yaml", "web/hooks/a.star", "web/lib/x.star", "web/templates/a.txt"}
	if got := slices.Sorted(maps.Keys(sources)); err != nil || !slices.Equal(got, want) {
		t.Errorf("sources %v, %v", got, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	long := strings.Repeat("x", MaxFileSize+1)
	for code, want := range map[string]string{
		`module.file("templates/b.txt")`: `there is no file web/templates/b.txt; did you mean "a.txt"?`,
		`module.file("templates")`:       "web/templates is a folder",
		`module.file("../shop/a.txt")`:   `"../shop/a.txt" is no path below the folder of the module`,
		`module.file("/etc/passwd")`:     `"/etc/passwd" is no path below`,
		`module.file("")`:                `"" is no path below`,
		`module.file("long.txt")`:        "cannot read web/long.txt: the file is larger than 1024 KiB",
		`module.file("binary")`:          "binary is no text in UTF-8",
		`module.files("../*/a.txt")`:     "is no path below",
		`module.files("[")`:              `"web/[" is no pattern`,
		`module.files("many/*")`:         `"web/many/*" names more than 1000 files, or more than 8 MiB`,
		`module.files("large/*")`:        `"web/large/*" names more than 1000 files, or more than 8 MiB`,
		`module.fil("a")`:                "module has no .fil (did you mean module.file?)",
		`load("//lib/x.star", "x")`:      "lib/x.star is of no module; read the file in one",
		`hook(lambda ctx: module.file("a")` + `, name = "a", on = [startup]); fail("so far")`: "so far",
	} {
		files := map[string]string{"web/long.txt": long, "web/binary": "\xff", "lib/x.star": "x = module.file(\"a\")\n"}
		for i := range maxMatches + 1 {
			files["web/many/"+strings.Repeat("a", i%40)+string(rune('a'+i/40))] = ""
		}
		for _, name := range strings.Split("abcdefghi", "") {
			files["web/large/"+name] = long[1:]
		}
		h := ofModule(t, code, files)
		if _, err := h.Load(t.Context(), "web/hooks/a.star"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", code, err, want)
		}
	}
}
