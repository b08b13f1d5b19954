package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// modulesUsage is what --modules takes.
const modulesUsage = "`folder` of the module tree, or several with : between them"

// errNoTree is what a command says that lacks its module tree.
var errNoTree = errors.New("the module tree is missing: name its folder, such as examples/quickstart")

// noTree is errNoTree for a command that takes a tree and a module, when its one argument is the folder of either.
func noTree(command, name string) error {
	switch {
	case namesTree(name):
		return fmt.Errorf("%s takes a module after its tree: %s %s MODULE", command, command, name)
	case tree.IsModule(name):
		_, module, _ := tree.ParseFolder(filepath.Base(name))
		return fmt.Errorf("%s takes a module after its tree: %s %s %s", command, command, filepath.Dir(name), module)
	}
	return errNoTree
}

// linksFlag declares --follow-links.
func linksFlag(fs *pflag.FlagSet, follow *bool) {
	fs.BoolVar(follow, "follow-links", false, "follow links in the module tree that lead out of its folder: whoever writes them has files of this machine read")
}

// selectorFlag is the value of --modules-selector.
type selectorFlag struct{ labels.Selector }

// addSelectorFlag declares --modules-selector.
func addSelectorFlag(fs *pflag.FlagSet, f *selectorFlag) {
	fs.Var(f, "modules-selector", "only the modules of the tree with these labels, of module(labels=), or names, such as tier=edge,name!=web: another instance has the others")
}

// Set implements [pflag.Value].
func (f *selectorFlag) Set(text string) (err error) {
	f.Selector, err = tree.ParseSelector(text)
	return err
}

// String implements [pflag.Value].
func (f *selectorFlag) String() string {
	if f.Selector == nil {
		return ""
	}
	return f.Selector.String()
}

// Type implements [pflag.Value].
func (f *selectorFlag) Type() string { return "selector" }

// someModule refuses a selector that no module has.
func (f *selectorFlag) someModule(gen *generation.Generation) error {
	if f.Selector != nil && len(gen.Names) == 0 {
		return fmt.Errorf("--modules-selector %s: no module of the tree has these labels, or this name", f)
	}
	return nil
}

// oneFolder refuses several folders where files are written.
func oneFolder(modules string) error {
	if len(tree.Folders(modules)) > 1 {
		return fmt.Errorf("--modules %s names several folders; name the one in which files are written", modules)
	}
	return nil
}
