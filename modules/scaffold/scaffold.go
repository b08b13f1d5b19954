// Package scaffold writes the first files of a module, of a controller, of a hook and of a
// test: they load, `starling check` has nothing to say of them, and `starling test` passes.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

//go:embed _files
var files embed.FS

// Module writes a new module below root, the folder with all modules, which is made
// when it is missing. It returns the paths of the files. A module that is there is an
// error, whatever weight its folder's name has.
func Module(root, name string) ([]string, error) { return module(root, name, "_files/module") }

// ModuleWithoutChart writes a new module as [Module] does, whose hook does all of it.
func ModuleWithoutChart(root, name string) ([]string, error) {
	return module(root, name, "_files/nochart")
}

func module(root, name, from string) ([]string, error) {
	plain, err := newModule(root, name)
	if err != nil {
		return nil, err
	}
	return folder(from, filepath.Join(root, name), "", struct{ Name, Key string }{plain, tree.Key(plain)})
}

// Controller writes a new module below root, as [Module] does, that declares a kind, and has a
// controller for it, a test and an example object.
func Controller(root, name string) ([]string, error) {
	plain, err := newModule(root, name)
	if err != nil {
		return nil, err
	}
	key := tree.Key(plain)
	kind := strings.ToUpper(key[:1]) + key[1:]
	if kind[0] < 'A' || kind[0] > 'Z' {
		return nil, fmt.Errorf("controller %q: its kind is called as the module, so the name must begin with a letter", name)
	}
	fn := function(strings.ReplaceAll(plain, "-", "_"))
	return folder("_files/controller", filepath.Join(root, name), plain, struct{ Name, Kind, Function string }{plain, kind, fn})
}

// newModule returns the name, without its weight, of a module that is not there yet.
func newModule(root, name string) (string, error) {
	_, plain, err := tree.ParseFolder(name)
	if err != nil {
		return "", fmt.Errorf("module %q: %w", name, err)
	}
	if name == "lib" || name == "testdata" {
		return "", fmt.Errorf("module %q: no module may be in a folder of this name: lib is the tree's own library, and of testdata no tests are run", name)
	}
	dir, err := find(root, plain)
	if err != nil {
		return "", err
	}
	if dir != "" {
		return "", fmt.Errorf("module %s is there already: %s", plain, filepath.Join(root, dir))
	}
	return plain, nil
}

// folder writes all files of a folder, with NAME in their names replaced by name.
func folder(from, to, name string, data any) (made []string, err error) {
	err = fs.WalkDir(files, from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file := strings.ReplaceAll(strings.TrimPrefix(path, from+"/"), "NAME", name)
		file = filepath.Join(to, filepath.FromSlash(file))
		if err := write(path, file, data); err != nil {
			return err
		}
		made = append(made, file)
		return nil
	})
	return made, err
}

// Hook writes a file with a new hook of a module, or, when module is "global", a
// global one. It returns the path of the file. A file that is there is an error.
func Hook(root, module, name string) (string, error) {
	base := strings.ReplaceAll(name, "-", "_")
	if !isName(base) {
		return "", fmt.Errorf("hook %q: a hook's name is made of a-z, 0-9, - and _, and begins with a letter", name)
	}
	if strings.HasSuffix(base, "_test") {
		return "", fmt.Errorf("hook %q: files that end in _test.star are tests, they are not loaded", name)
	}
	dir, err := hooksOf(root, module)
	if err != nil {
		return "", err
	}
	_, plain, _ := tree.ParseFolder(module)
	to := filepath.Join(root, dir, name+".star")
	return to, write("_files/hook.star", to, struct{ Function, Module string }{function(base), plain})
}

// Test writes a file with a new test beside the hooks of a module, or, when module is
// "global", beside the global ones. It returns the path of the file. A file that is
// there is an error.
func Test(root, module, name string) (string, error) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".star"), "_test")
	base := strings.ReplaceAll(name, "-", "_")
	if !isName(base) {
		return "", fmt.Errorf("test %q: a test's name is made of a-z, 0-9, - and _, and begins with a letter", name)
	}
	dir, err := hooksOf(root, module)
	if err != nil {
		return "", err
	}
	_, plain, _ := tree.ParseFolder(module)
	to := filepath.Join(root, dir, name+"_test.star")
	fn := function(base)
	// The test fails without the hook, and looks at what a new one does.
	hook, _ := os.ReadFile(filepath.Join(root, dir, name+".star"))
	return to, write("_files/test.star", to, struct {
		Test, Function, Module string
		Counts                 bool
	}{base, fn, plain, bytes.Contains(hook, []byte(`"`+fn+`_objects"`))})
}

// hooksOf returns the folder of a module's hooks below root.
func hooksOf(root, module string) (string, error) {
	dir, err := find(root, module)
	switch {
	case err != nil:
		return "", err
	case module == "global":
		dir = "global"
	case dir == "":
		return "", fmt.Errorf("there is no module %s in %s; make it with: starling new module %s --modules %s", module, root, module, root)
	default:
		dir = filepath.Join(dir, "hooks")
	}
	return dir, nil
}

// find returns the folder of a module below root, by its name or its folder's; "" when
// there is none.
func find(root, name string) (string, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", root, message.WithoutPath(err))
	}
	for _, e := range entries {
		if _, module, err := tree.ParseFolder(e.Name()); err == nil && (module == name || e.Name() == name) {
			return e.Name(), nil
		}
	}
	return "", nil
}

// function makes a name for the function of a hook that hides no other.
func function(name string) string {
	if _, err := script.Parse(name, []byte("def "+name+"(ctx):\n    pass\n")); err != nil || slices.Contains(builtins.Names(), name) {
		return name + "_hook"
	}
	return name
}

func isName(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (i == 0 || (r < '0' || r > '9') && r != '_') {
			return false
		}
	}
	return s != ""
}

// write fills a template in and writes it to a file that is not there yet.
func write(from, to string, data any) error {
	text, err := fs.ReadFile(files, from)
	if err != nil {
		return err
	}
	t, err := template.New(from).Delims("<<", ">>").Parse(string(text))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	return WriteNew(to, b.Bytes())
}
