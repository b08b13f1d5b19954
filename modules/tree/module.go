package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// isModule reports whether the folder dir of the root is a module.
func isModule(s *snapshot, dir string) bool {
	if s.has(dir+"/module.star") || hasChart(s, dir) || hasChart(s, dir+"/chart") || len(hookFiles(s, dir+"/hooks")) > 0 {
		return true
	}
	// A file that cannot be read may be the one that makes it a module: it must not look removed.
	return slices.ContainsFunc(s.broken, func(b brokenFile) bool { return inside(b.path, dir) })
}

func hasChart(s *snapshot, dir string) bool {
	return s.has(dir+"/Chart.yaml") || s.hasDir(dir+"/templates")
}

func inside(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// hookFiles returns the files below dir that register hooks: no tests, nothing of
// a lib folder.
func hookFiles(s *snapshot, dir string) []string {
	return s.below(dir, func(p string, isDir bool) bool {
		if isDir {
			return path.Base(p) != "lib"
		}
		return strings.HasSuffix(p, ".star") && !strings.HasSuffix(p, "_test.star")
	})
}

// readCommon reads what a module and global/ have in common.
func (t *Tree) readCommon(s *snapshot, m *Module) {
	if s.has(m.Dir + "/module.star") {
		m.ModuleFile = m.Dir + "/module.star"
	}
	m.HookFiles = hookFiles(s, m.Dir+"/hooks")
	m.ConfigSchema = s.file(m.Dir + "/openapi/config-values.yaml")
	m.ValuesSchema = s.file(m.Dir + "/openapi/values.yaml")
	for _, c := range s.children(m.Dir + "/openapi") {
		p := m.Dir + "/openapi/" + c.Name()
		switch f := s.file(p); {
		case c.Name() == "config-values.yaml" || c.Name() == "values.yaml":
		case f != nil && s.namedBeside(p):
			m.Definitions = append(m.Definitions, f)
		default:
			t.problem(p, m.Name, "not used: the schemas are openapi/config-values.yaml and openapi/values.yaml")
		}
	}
	for _, b := range s.broken {
		if inside(b.path, m.Dir) {
			m.fail(b.path, b.err)
		}
	}
}

// namedBeside says whether another file of the folder has the name of a file in its text.
func (s *snapshot) namedBeside(p string) bool {
	return slices.ContainsFunc(s.children(path.Dir(p)), func(c fs.DirEntry) bool {
		f := s.file(path.Join(path.Dir(p), c.Name()))
		return f != nil && f.Path != p && bytes.Contains(f.Data, []byte(path.Base(p)))
	})
}

// readGlobal reads the folder global/.
func (t *Tree) readGlobal(s *snapshot) *Module {
	m := &Module{Name: "global", Dir: "global", Key: "global", Values: map[string]any{}}
	t.readCommon(s, m)
	for _, c := range s.children("global") {
		p := "global/" + c.Name()
		if !c.IsDir() && strings.HasSuffix(p, ".star") && !strings.HasSuffix(p, "_test.star") && p != m.ModuleFile {
			m.HookFiles = append(m.HookFiles, p)
		}
	}
	slices.Sort(m.HookFiles)
	if hasChart(s, "global") || hasChart(s, "global/chart") {
		t.problem("global", "global", "its chart is not used: charts belong to modules")
	}
	return m
}

// readModule reads one module's folder.
func (t *Tree) readModule(s *snapshot, dir string) *Module {
	m := &Module{Dir: dir, Values: map[string]any{}}
	var err error
	if m.Weight, m.Name, err = ParseFolder(dir); err != nil {
		m.fail(dir, err)
	}
	m.Key = Key(m.Name)
	if l, ok := s.lock[m.Name]; ok {
		m.Locked = &l
	}
	t.readCommon(s, m)
	t.readChart(s, m)
	t.foreignHooks(s, m)
	for _, c := range s.children(dir) {
		p := dir + "/" + c.Name()
		if is := slips[strings.ToLower(c.Name())]; c.IsDir() && is != "" && is != c.Name() {
			t.problem(p, m.Name, "nothing reads this folder; did you mean %s/%s?", dir, is)
		}
		if !c.IsDir() && strings.HasSuffix(p, ".star") && !strings.HasSuffix(p, "_test.star") && p != m.ModuleFile {
			t.problem(p, m.Name, "not loaded: the files with hooks are in %s/hooks/, what they share in lib/", dir)
		}
	}
	return m
}

// readChart finds the chart, its values and the CRDs.
func (t *Tree) readChart(s *snapshot, m *Module) {
	root, own := m.Dir, m.Dir+"/chart"
	if hasChart(s, own) {
		if hasChart(s, m.Dir) {
			m.fail(m.Dir, errors.New("two charts, one in the folder and one in chart/: keep one"))
			return
		}
		root = own
	} else if !hasChart(s, m.Dir) {
		root = ""
	}
	valuesDir := root
	if root == "" {
		valuesDir = m.Dir
	}
	if f := s.file(valuesDir + "/values.yaml"); f != nil {
		values, err := ParseValues(f.Path, f.Data)
		if err != nil {
			m.Err = errors.Join(m.Err, err)
		} else {
			m.Values, m.ValuesFile = values, f.Path
		}
	}
	var crds []string
	if root != m.Dir { // the module's own: no file of a chart says which count
		crds = s.below(m.Dir+"/crds", isCRDFile)
	}
	if root == "" {
		m.CRDs = files(s, crds, "")
		if m.Locked != nil {
			readArchive(s, m)
		}
		return
	}
	m.Chart = &Chart{Values: m.Values, ValuesFile: m.ValuesFile, Name: m.Name, Version: "0.1.0"}
	ignored, err := helmIgnore(s, root)
	if err != nil {
		m.Err = errors.Join(m.Err, err)
	}
	// Those of subcharts are for the release: it knows which of them are on.
	if !ignored("crds", true) {
		crds = append(crds, s.below(root+"/crds", func(p string, isDir bool) bool {
			return isCRDFile(p, isDir) && !ignored(strings.TrimPrefix(p, root+"/"), isDir)
		})...)
	}
	m.CRDs = files(s, crds, "")
	m.Chart.Files = files(s, s.below(root, func(p string, isDir bool) bool {
		p = strings.TrimPrefix(p, root+"/")
		return ofChart(p, isDir, root == m.Dir) && !ignored(p, isDir)
	}), root+"/")
	if f := s.file(root + "/Chart.yaml"); f != nil {
		if m.Chart.Name, m.Chart.Version, err = chartName(f); err != nil {
			m.Err = errors.Join(m.Err, err)
		}
	} else {
		made := File{Path: "Chart.yaml", Data: fmt.Appendf(nil, "apiVersion: v2\nname: %s\nversion: %s\n", m.Name, m.Chart.Version)}
		m.Chart.Files = append([]File{made}, m.Chart.Files...)
	}
	m.Chart.Digest = chartDigest(m.Chart.Files)
}

// ofChart reports whether the file or folder at p in the chart's folder is the
// chart's own. shared: that folder is the module's folder too. crds/ is applied by
// us, before the chart.
func ofChart(p string, isDir, shared bool) bool {
	if isDir {
		switch p {
		case "crds":
			return false
		case "hooks", "openapi", "lib", "chart":
			return !shared
		}
		return true
	}
	return !strings.HasSuffix(p, ".star")
}

// isCRDFile leaves out what lies beside definitions in trees of others: READMEs, descriptions (doc-…), parts
// (_…), files of kustomize.
func isCRDFile(p string, isDir bool) bool {
	base := path.Base(p)
	name, ext := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
	return isDir || slices.Contains([]string{".yaml", ".yml", ".json"}, ext) &&
		!strings.HasPrefix(base, "doc-") && !strings.HasPrefix(base, "_") && strings.ToLower(name) != "kustomization"
}

// files returns the files at these paths, with the prefix taken off.
func files(s *snapshot, paths []string, prefix string) []File {
	var out []File
	for _, p := range paths {
		out = append(out, File{Path: strings.TrimPrefix(p, prefix), Data: s.entries[p].data})
	}
	return out
}

// chartName returns the name and the version that a Chart.yaml gives.
func chartName(f *File) (name, version string, err error) {
	m, err := parseMap(f.Path, f.Data, "a Chart.yaml")
	if err != nil {
		return "", "", err
	}
	version, _ = m["version"].(string)
	switch name := m["name"].(type) {
	case string:
		if name != "" {
			return name, version, nil
		}
	case nil:
	default: // such as on, or 123
		return "", version, fmt.Errorf("%s: name must be a string, not %s: put it in quotes", f.Path, kind(name))
	}
	return "", version, fmt.Errorf("%s: name is missing", f.Path)
}

// slips are names of folders that people write for those that are read.
var slips = map[string]string{
	"hook": "hooks", "hooks": "hooks", "template": "templates", "templates": "templates", "crd": "crds", "crds": "crds",
	"open-api": "openapi", "openapi": "openapi", "schema": "openapi", "schemas": "openapi",
}

// foreignHooks names files among the hooks that are of another language.
func (t *Tree) foreignHooks(s *snapshot, m *Module) {
	for _, c := range s.children(m.Dir + "/hooks") {
		switch p := m.Dir + "/hooks/" + c.Name(); path.Ext(p) {
		case ".py", ".sh", ".go", ".bzl", ".js":
			t.problem(p, m.Name, "not loaded: hooks are Starlark, in files that end in .star: %s.star", strings.TrimSuffix(p, path.Ext(p)))
		}
	}
}
