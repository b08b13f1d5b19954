package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

// maxReleases is how many HelmReleases one stream may hold.
const maxReleases = 1000

// flux brings the objects of one stream over.
type flux struct {
	file     string
	releases []*fluxObject
	sources  map[string]*fluxObject // by kind, namespace and name
	modules  map[string]*module     // by namespace and name of their HelmRelease
	names    map[string]string      // the folders of modules, by name
	sections map[string]any         // of the values.yaml of the tree
}

// fluxObject is one object of the stream.
type fluxObject struct {
	node                  *yaml.Node
	kind, namespace, name string
}

// String is "NAMESPACE/NAME".
func (o *fluxObject) String() string { return strings.TrimPrefix(o.namespace+"/"+o.name, "/") }

// Flux brings the HelmReleases of a stream of YAML over, each as a module, with their sources where the stream holds
// them. file is the name of the stream in notes. The new tree loads. It fails where the stream is broken or too
// large, and where it holds no HelmRelease.
func Flux(ctx context.Context, file string, data []byte) (*Result, error) {
	if err := bounded.CheckYAML(data); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	docs, err := documents(data)
	if err != nil {
		return nil, errors.New(broken("yaml", errors.New(strings.Replace(message.Line(err.Error()), "unmarshal errors: ", "", 1))))
	}
	f := &flux{file: file, sources: map[string]*fluxObject{}, modules: map[string]*module{}, names: map[string]string{}, sections: map[string]any{}}
	n := &notes{path: file}
	for _, doc := range docs {
		f.read(n, doc)
	}
	switch {
	case len(f.releases) == 0:
		return nil, fmt.Errorf("there is no HelmRelease in it; name a file that has one, or the output of kubectl get helmreleases -o yaml%s", first(n.all))
	case len(f.releases) > maxReleases:
		return nil, fmt.Errorf("it holds %d HelmReleases, the limit is %d: split it", len(f.releases), maxReleases)
	}
	r := &Result{}
	for _, o := range f.releases {
		if m := f.module(n, o); m != nil {
			r.modules = append(r.modules, m)
		}
	}
	if len(r.modules) == 0 {
		return nil, fmt.Errorf("no HelmRelease could be brought over%s", first(n.all))
	}
	for _, o := range f.releases {
		if m := f.modules[o.String()]; m != nil && m.lines == nil {
			f.release(m, o)
		}
	}
	if r.besides = n.all; len(f.sections) > 0 {
		data, err := yaml.Marshal(f.sections)
		if err != nil {
			return nil, err
		}
		r.root = append(r.root, tree.File{Path: "values.yaml", Data: data})
	}
	return r, r.mend(ctx)
}

// documents parses a stream of YAML; a document with a key that stands twice is broken.
func documents(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if recover() != nil { // the parser's own mistakes
			err = errors.New("this is no YAML")
		}
	}()
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		doc := &yaml.Node{}
		if err := d.Decode(doc); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, err
		}
		var all any
		if err := doc.Decode(&all); err != nil {
			return nil, err
		}
		if len(doc.Content) > 0 && all != nil {
			docs = append(docs, followed(doc.Content[0]))
		}
	}
}

// read takes an object in, and those of a list.
func (f *flux) read(n *notes, node *yaml.Node) {
	group, version, _ := strings.Cut(text(node, "apiVersion"), "/")
	o := &fluxObject{node: node, kind: text(node, "kind"), namespace: text(node, "metadata", "namespace"), name: text(node, "metadata", "name")}
	switch {
	case field(node, "items") != nil:
		for _, item := range field(node, "items").Content {
			f.read(n, followed(item))
		}
	case o.kind == "" || o.name == "":
		n.add(Left, "line %d: it is no object: kind and metadata.name are missing", node.Line)
	case group == "helm.toolkit.fluxcd.io" && o.kind == "HelmRelease" && (version == "v2" || strings.HasPrefix(version, "v2beta")):
		f.releases = append(f.releases, o)
	case group == "helm.toolkit.fluxcd.io" && o.kind == "HelmRelease":
		n.add(Left, "line %d: %s %s is of version %s; v2 and v2beta are brought over", node.Line, o.kind, o, version)
	case group == "source.toolkit.fluxcd.io" && (o.kind == "HelmRepository" || o.kind == "OCIRepository" || o.kind == "HelmChart"):
		f.sources[o.kind+" "+o.String()] = o
	default:
		n.add(Left, "line %d: %s %s: HelmReleases and the sources of their charts are brought over, and nothing else", node.Line, o.kind, o)
	}
}

// module makes the module of a HelmRelease, without its parts; nil where none can have its name.
func (f *flux) module(n *notes, o *fluxObject) *module {
	dir := strings.ReplaceAll(o.name, ".", "-")
	if f.names[dir] != "" && o.namespace != "" {
		dir = o.namespace + "-" + dir
	}
	name, err := moduleName(dir)
	switch {
	case f.modules[o.String()] != nil:
		err = errors.New("it stands there twice")
	case err == nil && f.names[name] != "":
		err = fmt.Errorf("the name %s belongs to another one of the stream", name)
	}
	if err != nil {
		n.add(Left, "line %d: HelmRelease %s: %v", o.node.Line, o, err)
		return nil
	}
	m := newModule(Options{}, dir)
	m.name, m.modules, m.origin = name, f.names, message.Clean(message.Line(fmt.Sprintf("the HelmRelease %s in line %d of %s", o, o.node.Line, f.file)))
	f.names[name], f.modules[o.String()] = dir, m
	return m
}

// release brings one HelmRelease over.
func (f *flux) release(m *module, o *fluxObject) {
	n := m.note(f.file)
	spec := field(o.node, "spec")
	namespace, release := o.namespace, text(spec, "releaseName")
	target, storage := text(spec, "targetNamespace"), text(spec, "storageNamespace")
	if release == "" {
		release = strings.TrimPrefix(target+"-"+o.name, "-")
	}
	if storage == "" {
		storage = namespace
	}
	if target != "" {
		namespace = target
	}
	m.say("enabled = True,")
	if namespace == "" {
		n.add(Left, "line %d: the HelmRelease names no namespace: without module(namespace = …) the release is in that of Starling", o.node.Line)
		m.say("# TODO: namespace = …, where the release is")
		m.lacks("the namespace of the release")
	} else {
		m.say("namespace = %s,", starlark(namespace))
	}
	if !releaseName.MatchString(release) {
		m.todo(n, o.node, "release = …: no release here has a name of more than 53 characters, or of others than a-z, 0-9 and -: %s", release)
		m.lacks("a name for the release")
	} else if release != m.name {
		m.say("release = %s,", starlark(release))
	}
	remote := f.chart(m, n, o)
	m.say("adopt = True,  # takes the release over that Flux has installed")
	if storage != namespace && storage != "" && namespace != "" {
		n.add(Left, "line %d: Flux keeps the records of the release in namespace %s, Starling in that of the release, %s: copy them before (docs/from-flux.md), then take the line of enabled() away",
			o.node.Line, storage, namespace)
		m.lacks("a copy of the records of the release, from namespace " + storage + " to " + namespace)
	}
	f.fields(m, n, o, spec)
	f.values(m, n, o, spec, remote)
	if m.missing != "" {
		m.function = "\ndef enabled():\n    # TODO: return True once this is done, see MIGRATION.md. Until then the release stays as it is.\n" +
			"    return waiting(" + starlark("not yet: "+m.missing) + ")\n"
	}
	n.add(Done, "line %d: HelmRelease %s is the module %s", o.node.Line, o, m.name)
}

var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`)

// say adds a line to the call of module().
func (m *module) say(format string, args ...any) {
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

// todo adds a comment to the call of module(), and a note.
func (m *module) todo(n *notes, at *yaml.Node, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	n.add(Left, "line %d: %s", at.Line, what)
	m.say("# TODO: line %d: %s", at.Line, message.Clean(message.Cut(message.Line(what), 400)))
}

// chart says which chart a HelmRelease has, and whether it is one of a registry or of a repository.
func (f *flux) chart(m *module, n *notes, o *fluxObject) (remote bool) {
	spec := field(o.node, "spec")
	template, owner := field(spec, "chart", "spec"), o
	at := spec
	if ref := field(spec, "chartRef"); ref != nil {
		at = ref
		source := f.source(ref, o)
		switch kind := text(ref, "kind"); {
		case kind == "OCIRepository" && source != nil:
			return f.ociRepository(m, n, source)
		case kind == "HelmChart" && source != nil:
			template, owner = field(source.node, "spec"), source
			n.table(source.node, "spec", chartFields, "")
		default:
			return f.noChart(m, n, at, "spec.chartRef names "+kind+" "+text(ref, "name")+", which is not in the stream")
		}
	}
	if template == nil {
		return f.noChart(m, n, o.node, "it names no chart")
	}
	ref := field(template, "sourceRef")
	source := f.source(ref, owner)
	name, version := text(template, "chart"), text(template, "version")
	if version == "" {
		version = "*"
	}
	switch kind := text(ref, "kind"); {
	case kind == "GitRepository" || kind == "Bucket":
		return f.noChart(m, n, template, "the chart is the folder "+name+" of "+kind+" "+text(ref, "name")+": copy it to "+m.dir+"/chart/")
	case source == nil || name == "":
		return f.noChart(m, n, template, "chart "+name+" is of "+kind+" "+text(ref, "name")+", which is not in the stream")
	default:
		n.table(source.node, "spec", sourceFields, source.kind+" ")
		return f.remote(m, n, template, strings.TrimSuffix(text(source.node, "spec", "url"), "/")+"/"+name, version)
	}
}

// ociRepository is the chart of an OCIRepository.
func (f *flux) ociRepository(m *module, n *notes, source *fluxObject) (remote bool) {
	spec := field(source.node, "spec")
	n.table(source.node, "spec", sourceFields, source.kind+" ")
	version := text(spec, "ref", "semver")
	if version == "" {
		version = text(spec, "ref", "tag")
	}
	return f.remote(m, n, spec, strings.TrimSuffix(text(spec, "url"), "/"), version)
}

// remote is a chart of a registry or a repository. One that module() would refuse is left to people.
func (f *flux) remote(m *module, n *notes, at *yaml.Node, url, version string) bool {
	if err := (builtins.RemoteChart{URL: url, Version: version}).Check(); err != nil {
		return f.noChart(m, n, at, err.Error())
	}
	m.say("chart = %s,", starlark(url))
	m.say("version = %s,", starlark(version))
	n.add(Changed, "line %d: version %s: starling fetch chooses the newest one once, and starling.lock keeps it until starling fetch --update; then starling check names what module(installs = …) has to allow", at.Line, version)
	return true
}

// noChart says that the module has no chart yet: its values stand in the values.yaml of the tree then.
func (f *flux) noChart(m *module, n *notes, at *yaml.Node, why string) bool {
	m.todo(n, at, "chart = …, version = …: %s", why)
	m.lacks("its chart")
	return false
}

// source is the object that a reference of an owner names; nil where the stream has none.
func (f *flux) source(ref *yaml.Node, owner *fluxObject) *fluxObject {
	named := fluxObject{namespace: text(ref, "namespace"), name: text(ref, "name")}
	if named.namespace == "" {
		named.namespace = owner.namespace
	}
	return f.sources[text(ref, "kind")+" "+named.String()]
}

// field is what is at a path of a map; nil where nothing, or null, is.
func field(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var below *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if followed(n.Content[i]).Value == key {
				below = followed(n.Content[i+1])
			}
		}
		n = below
	}
	if n != nil && n.Tag == "!!null" {
		return nil
	}
	return n
}

// text is the text, number or truth value at a path; "" where there is none.
func text(n *yaml.Node, path ...string) string {
	if n = field(n, path...); n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// followed is what an alias names.
func followed(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// parsed returns values as a file, with their comments where they can stand alone.
func parsed(file string, n *yaml.Node) ([]byte, error) {
	printed, err := printNode(file, n)
	if err == nil {
		return printed, nil
	}
	var all any // aliases that name what is outside are written out
	if err := n.Decode(&all); err != nil {
		return nil, err
	}
	if printed, err = yaml.Marshal(all); err == nil {
		_, err = tree.ParseValues(file, printed)
	}
	return printed, err
}
