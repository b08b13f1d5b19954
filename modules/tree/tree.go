// Package tree reads a module tree: the folder with one folder a module, global/
// and values.yaml. All is read into memory once, so that whatever is made of it is
// made of one state of the files.
package tree

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/message"
)

// MaxFileBytes is the largest file of a tree, where [Options] names no other size.
const MaxFileBytes = 4 << 20

// Options configures [Read]. Zero limits have defaults.
type Options struct {
	// Known is the digest of a tree whose modules are not wanted: it comes back without them.
	Known string
	// Name is what messages call the tree: the folder as the user wrote it.
	// Empty means ".".
	Name string
	// MaxFileBytes is the largest file; default [MaxFileBytes]. A larger one is an error
	// of its module.
	MaxFileBytes int64
	// MaxBytes is the size of all files together; default 64 MiB.
	MaxBytes int64
	// MaxFiles is how many files and folders one module may have, and how many there
	// may be beside the modules; default 10,000. More in one module is an error of that
	// module.
	MaxFiles int
	// MaxModules is how many folders there may be at the root; default 10,000.
	MaxModules int
	// MaxDepth is how deep folders may lie in each other; default 32.
	MaxDepth int
	// Empty allows a tree without modules: a folder of libraries, whose tests are
	// run.
	Empty bool
	// Archives gives the archive of a chart that the lock names and the tree lacks, or says why
	// it does not; nil: there are none but those of the tree. It may be called for each read.
	Archives func(Locked) ([]byte, error)
	// FollowLinks has [ReadDir] follow links that lead out of the folder: then those who write links have files
	// of this machine read as files of the tree.
	FollowLinks bool
	// Unlocked leaves the lock and its archives unread: modules have no other charts than
	// those in their folders.
	Unlocked bool
	// Selector is that of the tree, see [Tree].
	Selector labels.Selector
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, ".")
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, MaxFileBytes)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 10_000)
	o.MaxModules = cmp.Or(o.MaxModules, 10_000)
	o.MaxDepth = cmp.Or(o.MaxDepth, 32)
	return o
}

// Tree is one state of a module tree. Nothing in it may be changed.
type Tree struct {
	// Files holds all files that were read, by their path in the tree.
	Files fs.FS
	// Values is what values.yaml at the root holds, as plain data; empty without
	// the file: "global" and one section a module (maps), and "<key>Enabled"
	// (bools) — those of modules with an Err may be of any type.
	Values map[string]any
	// ValuesFile is "values.yaml", or "" when there is none.
	ValuesFile string
	// Global is the folder global/ as a module of that name; nil without it.
	Global *Module
	// Modules by name. Those with an Err are among them: an unreadable module is
	// not a removed one.
	Modules []*Module
	// Hollow are the names, without weights, of folders that hold nothing of a
	// module. Such a folder may be one that is being written: a module of that
	// name is not there, but it has not been removed either.
	Hollow []string
	// Digest is the SHA-256, in hex, of all paths and contents.
	Digest string
	// Selector says which modules an instance has, by their labels, which are known once they are loaded;
	// nil: all. The others are read, too.
	Selector labels.Selector
	// Problems are what is odd and changes nothing, by path.
	Problems []Problem
}

// Problem is something odd that keeps nothing from working, but probably is not
// what its author wanted.
type Problem struct {
	// Path in the tree.
	Path string
	// Module is its module's name; empty for the tree's own files.
	Module string
	// Msg in one line, without the path.
	Msg string
}

// String returns "path: message".
func (p Problem) String() string { return p.Path + ": " + p.Msg }

// Module is one module's folder.
type Module struct {
	// Name is the folder's name without its weight, a DNS label; "global" for
	// global/.
	Name string
	// Weight comes from a folder name like 020-ingress-nginx; nil without one.
	Weight *int
	// Dir is the folder's path in the tree: its name.
	Dir string
	// Key is the name in camel case, by which values and config call the module:
	// "ingressNginx".
	Key string
	// ModuleFile is the path of module.star, "" without one.
	ModuleFile string
	// HookFiles are the paths of the files that register hooks, sorted.
	HookFiles []string
	// Chart is nil for a hook-only module.
	Chart *Chart
	// Locked is the chart that the lock names for it; nil: none. The module has it when its
	// folder holds no other.
	Locked *Locked
	// Values is what the module's values.yaml holds (its chart's, when the folder has
	// one), as plain data; never nil. ValuesFile is its path, "" without one.
	Values     map[string]any
	ValuesFile string
	// ChartValues is what the values.yaml in the archive of the chart holds, over which Values
	// lie; nil for other modules. ChartValuesFile names it in messages.
	ChartValues     map[string]any
	ChartValuesFile string
	// CRDs are the files of crds/, the module's own and its chart's, as they are. Those
	// of subcharts are in the chart.
	CRDs []File
	// ConfigSchema and ValuesSchema are openapi/config-values.yaml and
	// openapi/values.yaml; nil without them.
	ConfigSchema, ValuesSchema *File
	// Definitions are files beside them that one of them, or of these, names, as $ref does.
	Definitions []*File
	// Err is what makes this module unusable, each error with its path; the other
	// modules go on.
	Err error
}

// File is one file. Path is its path in the tree, or, in a [Chart], in the chart.
type File = helm.File

// Chart is a module's Helm chart.
type Chart struct {
	// Name and Version as Chart.yaml has them; the module's name without a Chart.yaml, and "" for a
	// version that is no text.
	Name, Version string
	// Files are the chart's own files and no others (no hooks, schemas, CRDs), by
	// path. A Chart.yaml is always among them: one is made up when there is none.
	Files []File
	// Archive is the path of the archive that it comes from, "" for one in the module's folder.
	Archive string
	// Values and ValuesFile are the module's.
	Values     map[string]any
	ValuesFile string
	// Digest is the SHA-256, in hex, of all paths and contents.
	Digest string
}

// ReadDir reads the tree in a folder of the disk, or in several, with the separator of lists of paths (a colon)
// between them. Links that lead out of a folder are followed with o.FollowLinks alone. For a mounted ConfigMap
// (a folder with a link named ..data) it reads the folder behind that link, which never changes: an update
// puts a new one in its place, which is then read instead. So it does where dir itself is
// a link.
func ReadDir(dir string, o Options) (*Tree, error) {
	o.Name = cmp.Or(o.Name, dir)
	for range 3 {
		resolved := current(dir)
		t, err := readRoots(dir, resolved, o)
		// A folder that was replaced meanwhile was perhaps half removed when it
		// was read: what is missing in it says nothing.
		if slices.Equal(current(dir), resolved) {
			return t, err
		}
	}
	return nil, fmt.Errorf("modules folder %s changes faster than it can be read", o.Name)
}

// Folders are the folders that a text names, one or more.
func Folders(dir string) []string {
	if list := filepath.SplitList(dir); len(list) > 1 {
		return list
	}
	return []string{dir}
}

// current returns the folders behind the ..data links, or those of dir without one, with all links
// on the way followed: git-sync replaces one of them with each update.
func current(dir string) (out []string) {
	for _, one := range Folders(dir) {
		if target, err := filepath.EvalSymlinks(filepath.Join(one, "..data")); err == nil {
			one = target
		} else if target, err := filepath.EvalSymlinks(one); err == nil {
			one = target
		}
		out = append(out, one)
	}
	return out
}

// readRoots reads the folders that dir names, and that are these by now.
func readRoots(dir string, resolved []string, o Options) (*Tree, error) {
	fsys, closeAll, err := open(Folders(dir), resolved, o.FollowLinks)
	if err != nil {
		return nil, fmt.Errorf("cannot read the modules folder %w", err)
	}
	defer closeAll()
	return Read(fsys, o)
}

// Open opens a folder of the disk, or several as one, as [ReadDir] takes them. Links that lead out of a
// folder are followed with followLinks alone. The caller closes it.
func Open(dir string, followLinks bool) (fsys fs.FS, closeAll func(), err error) {
	return open(Folders(dir), Folders(dir), followLinks)
}

// open opens folders, of which an error says the names.
func open(names, resolved []string, followLinks bool) (fs.FS, func(), error) {
	all := folders{names: names}
	var opened []*os.Root
	closeAll := func() {
		for _, root := range opened {
			root.Close()
		}
	}
	for i, one := range resolved {
		root, err := os.OpenRoot(one)
		if err != nil {
			closeAll()
			return nil, nil, fmt.Errorf("%s: %w", names[i], message.WithoutPath(err))
		}
		opened = append(opened, root)
		if followLinks {
			all.roots = append(all.roots, os.DirFS(one))
		} else {
			all.roots = append(all.roots, root.FS())
		}
	}
	if len(all.roots) == 1 {
		return all.roots[0], closeAll, nil
	}
	return all, closeAll, nil
}

// Read reads the tree whose root is fsys. It fails when the tree as a whole is of
// no use: unreadable, empty, over a limit, or with a broken values.yaml; the
// caller then keeps what it has. An error of one module is that module's
// Err.
func Read(fsys fs.FS, o Options) (*Tree, error) {
	o = o.withDefaults()
	s, err := takeSnapshot(fsys, o)
	if err != nil {
		return nil, err
	}
	return ofFiles(s, o)
}

// ofFiles makes a tree of its files.
func ofFiles(s *snapshot, o Options) (*Tree, error) {
	t := &Tree{Files: s, Digest: s.digest(), Selector: o.Selector, Problems: s.problems, Values: map[string]any{}}
	if t.Digest == o.Known {
		return t, nil
	}
	for _, e := range s.children(".") {
		if !e.IsDir() {
			continue
		}
		switch name := e.Name(); {
		case name == path.Dir(ChartsDir):
		case name == "global":
			t.Global = t.readGlobal(s)
		case name == "lib":
		case isModule(s, name):
			t.Modules = append(t.Modules, t.readModule(s, name))
		default:
			_, module, _ := ParseFolder(name)
			t.Hollow = append(t.Hollow, module)
			t.problem(name, "", "no module: a module has module.star, hooks/, Chart.yaml or templates/; the folder is ignored")
		}
	}
	for _, b := range s.broken {
		switch {
		case inside(b.path, "lib"):
			t.problem(b.path, "", "%v", b.err)
		case strings.Contains(b.path, "/") || s.hasDir(b.path) || b.path == "values.yaml":
		case !b.link:
			t.problem(b.path, "", "%v", b.err)
		case b.path == "global":
			t.Global = t.readGlobal(s)
		default: // it may be a module: it must not look removed
			t.Modules = append(t.Modules, t.readModule(s, b.path))
		}
	}
	switch {
	case !t.Empty() || o.Empty:
	case s.has("module.star") || s.has("Chart.yaml") || len(hookFiles(s, "hooks")) > 0:
		return nil, fmt.Errorf("%s is the folder of one module: name the folder that it lies in", o.Name)
	default:
		return nil, fmt.Errorf("modules folder %s is empty: no module in it", o.Name)
	}
	t.refuseDuplicates()
	t.lockedOthers(s)
	slices.SortStableFunc(t.Modules, func(a, b *Module) int { return strings.Compare(a.Name, b.Name) })
	if err := t.readValues(s, o); err != nil {
		return nil, err
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return t, nil
}

// refuseDuplicates gives modules that cannot be told apart an error each.
func (t *Tree) refuseDuplicates() {
	byKey := map[string]*Module{}
	for _, m := range t.Modules {
		other := byKey[m.Key]
		if other == nil {
			byKey[m.Key] = m
			continue
		}
		what := fmt.Sprintf("the name %s", m.Name)
		if m.Name != other.Name {
			what = fmt.Sprintf("the values key %s", m.Key)
		}
		m.fail(m.Dir, fmt.Errorf("%s has %s too: rename one", other.Dir, what))
		other.fail(other.Dir, fmt.Errorf("%s has %s too: rename one", m.Dir, what))
	}
	for _, m := range t.Modules {
		for suffix, what := range map[string]string{"Enabled": "the switch", "Drift": "a setting", "Paused": "a setting", "Maintenance": "a setting"} {
			key, is := strings.CutSuffix(m.Key, suffix)
			if owner := byKey[key]; is && owner != nil {
				m.fail(m.Dir, fmt.Errorf("its values key %s is %s of module %s: rename one", m.Key, what, owner.Name))
			}
		}
	}
}

// lockedOthers tells of charts that the lock names for modules that are not there.
func (t *Tree) lockedOthers(s *snapshot) {
	for _, name := range slices.Sorted(maps.Keys(s.lock)) {
		if !slices.ContainsFunc(t.Modules, func(m *Module) bool { return m.Name == name }) {
			t.problem(LockFile, "", "it names a chart of module %s, which is not there: run starling fetch, which takes it out", name)
		}
	}
}

func (t *Tree) problem(path, module, format string, args ...any) {
	t.Problems = append(t.Problems, Problem{path, module, fmt.Sprintf(format, args...)})
}

// fail adds an error of the module.
func (m *Module) fail(path string, err error) {
	m.Err = errors.Join(m.Err, fmt.Errorf("%s: %w", path, err))
}
