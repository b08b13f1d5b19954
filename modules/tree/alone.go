package tree

// AloneName is the name of the module that [Tree.Alone] makes.
const AloneName = "test"

// Empty says that the tree has no modules and no global hooks, see [Options.Empty].
func (t *Tree) Empty() bool { return len(t.Modules) == 0 && t.Global == nil }

// Alone returns a tree of the same files with one module, which is the file at this
// path: it declares it and registers its hooks. So tests of libraries, which are in
// no module, have one.
func (t *Tree) Alone(file string) *Tree {
	return &Tree{Files: t.Files, Values: map[string]any{}, Digest: t.Digest, Modules: []*Module{{
		Name: AloneName, Dir: ".", Key: AloneName, ModuleFile: file, HookFiles: []string{file}, Values: map[string]any{},
	}}}
}
