package command

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// ModulesUsage is what --modules takes.
const ModulesUsage = "`folder` of the module tree, or several with : between them"

// ErrNoTree is what a command says that lacks its module tree.
var ErrNoTree = errors.New("the module tree is missing: name its folder, such as examples/quickstart")

// NoTree is ErrNoTree for a command that takes a tree and a module, when its one argument is the folder of either.
func NoTree(command, name string) error {
	switch {
	case NamesTree(name):
		return fmt.Errorf("%s takes a module after its tree: %s %s MODULE", command, command, name)
	case tree.IsModule(name):
		_, module, _ := tree.ParseFolder(filepath.Base(name))
		return fmt.Errorf("%s takes a module after its tree: %s %s %s", command, command, filepath.Dir(name), module)
	}
	return ErrNoTree
}

// LinksFlag declares --follow-links.
func LinksFlag(fs *pflag.FlagSet, follow *bool) {
	fs.BoolVar(follow, "follow-links", false, "follow links in the module tree that lead out of its folder: whoever writes them has files of this machine read")
}

// Reading says how a module tree is read.
type Reading struct {
	Links    bool // follow those that lead out of the tree
	selector selector
}

// AddFlags declares --follow-links and --modules-selector.
func (r *Reading) AddFlags(fs *pflag.FlagSet) {
	LinksFlag(fs, &r.Links)
	fs.Var(&r.selector, "modules-selector", "only the modules of the tree with these labels, of module(labels=), or names, such as tier=edge,name!=web: another instance has the others")
}

// Options are those of package tree.
func (r *Reading) Options() tree.Options {
	return tree.Options{FollowLinks: r.Links, Selector: r.selector.Selector}
}

// SomeModule refuses a selector that no module has.
func (r *Reading) SomeModule(gen *generation.Generation) error {
	if r.selector.Selector != nil && len(gen.Names) == 0 {
		return fmt.Errorf("--modules-selector %s: no module of the tree has these labels, or this name", &r.selector)
	}
	return nil
}

// selector is the value of --modules-selector.
type selector struct{ labels.Selector }

// Set implements [pflag.Value].
func (f *selector) Set(text string) (err error) {
	f.Selector, err = tree.ParseSelector(text)
	return err
}

// String implements [pflag.Value].
func (f *selector) String() string {
	if f.Selector == nil {
		return ""
	}
	return f.Selector.String()
}

// Type implements [pflag.Value].
func (f *selector) Type() string { return "selector" }

// Pause are the modules of --pause.
type Pause []string

// PauseAll is what a bare --pause means.
const PauseAll = "*"

// All says whether all modules are paused.
func (p Pause) All() bool { return slices.Contains(p, PauseAll) }

// Check says whether the modules are there.
func (p Pause) Check(gen *generation.Generation) error {
	for _, name := range p {
		if name != PauseAll && gen.Modules[name] == nil {
			return fmt.Errorf("--pause=%s: there is no such module; the tree has %s", name, strings.Join(gen.Names, ", "))
		}
	}
	return nil
}

// OneFolder refuses several folders where files are written.
func OneFolder(modules string) error {
	if len(tree.Folders(modules)) > 1 {
		return fmt.Errorf("--modules %s names several folders; name the one in which files are written", modules)
	}
	return nil
}
