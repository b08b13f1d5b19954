package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

// module brings one module over, or the global hooks.
type module struct {
	o       Options
	dir     string // in both trees
	name    string
	files   map[string]oldFile // by their path in the folder
	all     []*notes
	out     []tree.File
	from    map[string]string // the old paths of files, by their new ones
	modules map[string]string // the folders of all modules, by name
	// refused are the new files that stand there as comments.
	refused map[string]bool
	// what module.star says
	origin            string   // where the module comes from; "": from a folder of that name
	lines             []string // of the call of module(), before all others
	enabled           *bool
	function          string
	requires          []string
	conditions        []condition
	besides           map[string]any // values of the chart outside of the module's section
	list              bool           // its section was a list, which the chart sees as before
	secrets           []raw
	queues            map[string]bool
	folders           *goFolders
	installs, lookups []string
	hooks             int
	answers           bool // a hook answers requests of the API server
	// missing is a part, the first one, without which the chart would not render as before.
	missing string
}

func newModule(o Options, dir string) *module {
	files := map[string]oldFile{}
	return &module{o: o, dir: dir, files: files, from: map[string]string{}, refused: map[string]bool{},
		queues: map[string]bool{}, folders: &goFolders{files: files, read: map[string]*goPackage{}}}
}

// lacks says that a part of the old tree is missing.
func (m *module) lacks(part string) {
	m.missing = cmp.Or(m.missing, part)
}

// note returns the notes of one file.
func (m *module) note(p string) *notes {
	n := &notes{path: p}
	m.all = append(m.all, n)
	return n
}

// write adds a file, which comes from an old one, or from none.
func (m *module) write(rel, old string, data []byte) {
	to := path.Join(m.dir, rel)
	m.out = append(m.out, tree.File{Path: to, Data: data})
	m.from[to] = old
}

func (m *module) hasChart() bool {
	for rel := range m.files {
		if rel == "Chart.yaml" || strings.HasPrefix(rel, "templates/") {
			return m.name != "global"
		}
	}
	return false
}

// isModule reports whether the folder holds anything that addon-operator takes for a module.
func (m *module) isModule() bool {
	for rel := range m.files {
		first, _, below := strings.Cut(rel, "/")
		if slices.Contains([]string{"enabled", "Chart.yaml", "values.yaml"}, rel) || below && slices.Contains([]string{"hooks", "templates", "crds", "openapi"}, first) {
			return true
		}
	}
	return false
}

// translate brings all files over.
func (m *module) translate() {
	taken := schemas(m.files, m.note)
	for _, name := range schemaNames {
		if f, is := m.files["openapi/"+name]; is && taken[name] == nil {
			m.lacks(f.path)
		}
	}
	for name, data := range taken {
		m.write("openapi/"+name, m.files["openapi/"+name].path, data)
	}
	for _, rel := range slices.Sorted(maps.Keys(m.files)) {
		m.file(rel, m.files[rel])
	}
}

// file brings one file over.
func (m *module) file(rel string, f oldFile) {
	first, below, inFolder := strings.Cut(rel, "/")
	base := path.Base(rel)
	switch {
	case rel == "enabled":
		m.function, m.requires, m.conditions = enabledFunction(m.note(f.path), string(f.data), m.modules)
	case rel == "values.yaml":
		m.values(rel, f)
	case rel == ".namespace":
		m.note(f.path).add(Left, "addon-operator does not read it: all its releases are in its own namespace, and Starling must run there to take them over")
	case rel == "module.yaml":
		m.note(f.path).add(Left, "Starling does not read it: module(weight =, requires =, after =) say the order, enabled() says when the module is on")
		if m.hasChart() { // a template may
			m.write(rel, f.path, f.data)
		}
	case strings.HasPrefix(base, ".") && base != ".helmignore":
		m.note(f.path).add(Left, "Starling reads no hidden files")
	case first == "hooks" && inFolder:
		m.hook(below, f)
	case first == "openapi" && inFolder:
		if !slices.Contains(schemaNames, below) && m.from[path.Join(m.dir, rel)] == "" {
			m.note(f.path).add(Left, "Starling does not use it")
		}
	case first == "crds" && inFolder:
		m.crd(rel, f)
	case slices.Contains([]string{"docs", "images", "lib"}, first) && inFolder:
		m.note(path.Join(m.dir, first)).add(Left, "the folder: Starling does not use it")
	case strings.HasSuffix(rel, ".star"):
		m.note(f.path).add(Left, "files of Starlark are new: rename it")
	case m.hasChart():
		m.chartFile(rel, f)
	default:
		m.note(f.path).add(Left, "Starling does not use it: the module has no chart")
	}
}

// values brings the values of the module over.
func (m *module) values(rel string, f oldFile) {
	n := m.note(f.path)
	v := moduleValues(n, f.data, tree.Key(m.name))
	m.enabled = v.enabled
	if m.hasChart() {
		m.besides = v.besides
		m.list = m.list || v.list
	}
	if slices.ContainsFunc(n.all, func(n Note) bool { return n.Fate == Left }) {
		m.lacks(f.path)
	}
	if v.section != nil {
		m.write(rel, f.path, v.section)
	}
}

// crd brings a file of crds/ over.
func (m *module) crd(rel string, f oldFile) {
	base := path.Base(rel)
	if strings.HasPrefix(base, "doc-") || strings.HasPrefix(base, "_") { // no definitions for either of them
		m.write(rel, f.path, f.data)
		return
	}
	n := m.note(f.path)
	sums, err := chart.CheckCRDs(chart.File{Path: f.path, Data: f.data})
	switch {
	case !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base)):
		n.add(Left, "it is neither YAML nor JSON, and nothing else may be in crds/")
	case err != nil:
		n.add(Left, "nothing but CustomResourceDefinitions may be in crds/: %s", message.Line(strings.TrimPrefix(err.Error(), f.path+": ")))
		m.lacks(f.path)
	case len(sums) == 0:
		n.add(Left, "it holds no CustomResourceDefinition, and nothing else may be in crds/")
	default:
		m.write(rel, f.path, f.data)
		n.add(Done, "as it is")
	}
}

// chartFile brings a file of the chart over.
func (m *module) chartFile(rel string, f oldFile) {
	m.write(rel, f.path, f.data)
	m.note(m.dir).add(Done, "the chart, as it is")
}

// registers is a call in Go that registers a hook.
var registers = regexp.MustCompile(`\bRegister\w*\(`)

// hook brings a file of the folder of hooks over. below is its path there.
func (m *module) hook(below string, f oldFile) {
	base := path.Base(below)
	isGo := path.Ext(base) == ".go" && registers.Match(f.data)
	inLib := slices.Contains(strings.Split(path.Dir(below), "/"), "lib")
	switch {
	case strings.HasSuffix(base, "_test.go"):
		return
	case isGo && bytes.Contains(f.data, []byte("RegisterEnsureCRDsHook")):
		m.note(f.path).add(Done, "it applies crds/, which Starling does itself")
		return
	case !isGo && !f.executable && looksLikeConfig(string(f.data)):
		m.note(f.path).add(Left, "it is not executable, so it was no hook; if it is one, say chmod +x and begin again")
		return
	case !isGo && (!f.executable || inLib || strings.HasPrefix(base, ".") || slices.Contains([]string{".yaml", ".json", ".md", ".txt"}, path.Ext(base))):
		m.note(f.path).add(Left, "it is no hook: functions that hooks share go to lib/, and module.file(…) reads a text as the hook is loaded")
		return
	}
	at := place{module: m.name, global: m.name == "global", chart: m.hasChart(), folders: m.folders, queues: m.queues}
	at.folder = path.Dir(strings.TrimPrefix(f.path, m.dir+"/"))
	h, ok := translateHook(m.note(f.path), f.data, at, m.o)
	if !ok {
		m.lacks(f.path)
		return
	}
	stem := m.stem("hooks/" + strings.TrimSuffix(below, path.Ext(below)))
	m.write(stem+".star", f.path, []byte(h.text))
	m.write(stem+"_test.star", f.path, []byte(testFile(functionName(strings.TrimSuffix(base, path.Ext(base))), f.path)))
	m.secrets = append(m.secrets, h.secrets...)
	m.hooks++
	m.answers = m.answers || h.answers
}

// stem is a path for a hook and for its test that no other file of the module has.
func (m *module) stem(wanted string) string {
	wanted = strings.TrimSuffix(wanted, "_test")
	taken := func(rel string) bool { return m.from[path.Join(m.dir, rel)] != "" }
	stem := wanted
	for n := 2; taken(stem+".star") || taken(stem+"_test.star"); n++ {
		stem = fmt.Sprintf("%s-%d", wanted, n)
	}
	return stem
}
