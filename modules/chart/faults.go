package chart

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
	plain "github.com/starling-operator/starling/runtime/object"
)

// Fault is what the API server cannot be told of an object of a chart.
type Fault struct {
	// Template is its path as Helm names it, "web/templates/a.yaml". Line counts from 1, 0: it is not seen.
	Template string
	Line     int
	// Text names the object, and says what to do.
	Text string
	// Warns: the object is applied all the same, and Text says as what.
	Warns bool
}

// String is the fault with its place, as errors begin.
func (f Fault) String() string {
	return atLine(f.Template, f.Line) + ": " + f.Text
}

// faults gathers those of a release, one rendered file after the other.
type faults struct {
	t Input
	// clusterWide says whether the cluster serves the kind of an object without namespaces.
	clusterWide func(Object) bool
	definitions []File  // of custom kinds
	schemas     Schemas // of those that were looked at
	found       []Fault
	seen        map[string][]place // by kind and name
	targets     []target
	lost        []lostPort
}

// place is where a chart renders an object.
type place struct {
	file string
	Object
	text string // of its document, "" where nobody asks for it
}

// target is a port by its name, as a Service or the like wants it of the Pods that it selects.
type target struct {
	of, field, port string
	selects         map[string]any
}

// wantsPorts are where kinds name ports of Pods that they select.
var wantsPorts = map[string]struct {
	selector, list []string
	field          string
}{
	"v1Service":                          {[]string{"spec", "selector"}, []string{"spec", "ports"}, "targetPort"},
	"monitoring.coreos.com/v1PodMonitor": {[]string{"spec", "selector", "matchLabels"}, []string{"spec", "podMetricsEndpoints"}, "port"},
}

// lostPort is a name of a port that is not applied.
type lostPort struct {
	fault  int // of found
	port   string
	number string
	labels map[string]any
}

// ObjectsIn names the objects of rendered files. The error is about the first one that the API server cannot be told
// of; warnings are about objects that are applied in another way than the chart has it. clusterWide says whether the
// cluster serves the kind of an object without namespaces.
func ObjectsIn(in Input, ch *helm.Chart, files map[string]string, clusterWide func(Object) bool) (
	all []Object, warnings []string, err error,
) {
	f := faults{t: in, clusterWide: clusterWide, seen: map[string][]place{}, definitions: slices.Concat(in.CRDs, helm.CRDs(ch))}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		found, err := documentsOf(files[name])
		if err != nil {
			return nil, nil, notYAML(in.Chart, name, files[name], err)
		}
		f.file(name, found)
		all = append(all, withKinds(found)...)
	}
	for _, fault := range f.all() {
		if !fault.Warns {
			return nil, nil, errors.New(fault.String())
		}
		warnings = append(warnings, fault.String())
	}
	return all, warnings, nil
}

// file looks at the objects of one rendered file.
func (f *faults) file(name string, objects []Object) {
	for i, o := range objects {
		if o.Kind == "" || o.APIVersion == "" {
			f.kindless(name, o)
			continue
		}
		f.metadata(name, o)
		f.twice(name, o)
		f.keys(name, o)
		objects[i].doc = nil
	}
}

func (f *faults) add(file string, o Object, at, text string) {
	line := cmp.Or(f.line(file, o, at), f.line(file, o, "metadata"), f.line(file, o, "kind"))
	f.found = append(f.found, Fault{Template: file, Line: line, Text: text})
}

// line is the first one of lines; 0 when none is seen.
func (f *faults) line(file string, o Object, at string) int {
	return append(f.lines(file, o, at), 0)[0]
}

// lines are where a template may give an object, or the item of a list, a field.
func (f *faults) lines(file string, o Object, at string) (lines []int) {
	for _, kind := range []string{o.Kind, o.Kind + "List", "List"} {
		if lines == nil {
			lines = linesOf(template(f.t.Chart, file), kind, o.Name, at)
		}
	}
	return lines
}

// kindless tells of an object that does not say what it is. Without metadata it may be none.
func (f *faults) kindless(file string, o Object) {
	if o.Kind+o.APIVersion == "" && o.doc["metadata"] == nil && len(o.doc) > 0 {
		return
	}
	field, of := "kind", "an object"
	if o.Kind != "" {
		field, of = "apiVersion", o.Kind
	}
	if o.Name != "" {
		of += " " + strconv.Quote(message.Cut(o.Name, 100))
	}
	f.add(file, o, "metadata.name", of+" has no "+field+": give it one, or leave the document out")
}

// metadata tells of names that are missing, and of what is no text: YAML takes y, on and 1.0 for something else.
func (f *faults) metadata(file string, o Object) {
	of, isMap := o.doc["metadata"].(map[string]any)
	if o.doc["metadata"] != nil && !isMap {
		f.add(file, o, "metadata", fmt.Sprintf("%s: metadata is %s: it must be a map", o.Kind, typeOf(o.doc["metadata"])))
		return
	}
	right := true
	wrong := func(field string, v any) bool {
		_, text := v.(string)
		if text || v == nil {
			return false
		}
		at, _, _ := strings.Cut(field, "[")
		f.add(file, o, "metadata."+at, fmt.Sprintf("%s: metadata.%s is %s: it must be a string, in quotes where YAML takes it for something else",
			o.Kind, field, typeOf(v)))
		right = false
		return true
	}
	if named := !wrong("name", of["name"]); named && (!o.Test || f.t.Test) {
		f.name(file, o, of)
	}
	wrong("namespace", of["namespace"])
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := of[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			if right && wrong(field+"["+strconv.Quote(message.Cut(key, 100))+"]", texts[key]) {
				break
			}
		}
	}
}

// name tells of an object without a name, or with one that no path of the API server can hold.
func (f *faults) name(file string, o Object, metadata map[string]any) {
	hint := "give it a name"
	if o.Kind == "Job" || o.Kind == "Pod" || o.Hook {
		hint = "give it a name, and let it be a hook (helm.sh/hook: post-install,post-upgrade), which each release makes anew"
	}
	if o.Hook {
		hint = "give it a name: the hook of the release before is deleted first, unless helm.sh/hook-delete-policy says otherwise"
	}
	_, there := metadata["name"]
	_, generated := metadata["generateName"]
	switch problems := rest.IsValidPathSegmentName(o.Name); {
	case o.Name != "" && len(problems) > 0:
		f.add(file, o, "metadata.name", fmt.Sprintf("%s: metadata.name %q %s", o.Kind, message.Cut(o.Name, 100), problems[0]))
	case o.Name != "":
	case generated:
		f.add(file, o, "metadata.generateName", o.Kind+" has metadata.generateName and no metadata.name, "+
			"so that no release finds again what another one has made: "+hint)
	case there:
		f.add(file, o, "metadata.name", o.Kind+": metadata.name is empty: "+hint)
	case metadata == nil:
		f.add(file, o, "kind", o.Kind+" has no metadata.name: "+hint)
	default:
		f.add(file, o, "metadata", o.Kind+" has no metadata.name: "+hint)
	}
}

// twice tells of an object that the chart renders elsewhere, too, for a release has it once. An object of a hook may
// have gone when another one takes its place.
func (f *faults) twice(file string, o Object) {
	if o.Hook || o.Name == "" {
		return
	}
	id := o.GVK().GroupKind().String() + "/" + o.Name
	for _, other := range f.seen[id] {
		if other.Identity(f.t.Namespace) != o.Identity(f.t.Namespace) && (f.clusterWide == nil || !f.clusterWide(o)) {
			continue
		}
		where, nth := "in "+other.file+" too", 1
		if other.file == file {
			where, nth = "there twice", 2
		}
		if other.APIVersion != o.APIVersion {
			where += ", as " + other.APIVersion
		}
		f.found = append(f.found, Fault{
			Template: file, Line: f.named(file, o, nth),
			Text: fmt.Sprintf("%s is %s: rename one, or leave one out", o, where),
		})
		return
	}
	f.seen[id] = append(f.seen[id], place{file: file, Object: o})
}

// keys tells of lists that have a key twice.
func (f *faults) keys(file string, o Object) {
	doc := maps.Clone(o.doc)
	doc["apiVersion"], doc["kind"] = o.APIVersion, o.Kind // an item of a list may have none
	repeated, found := KeyFaults(f.t.Chart, file, doc, f.schema(o))
	if o.Hook {
		repeated = nil
	}
	for i, r := range repeated {
		for _, port := range r.Lost {
			f.lost = append(f.lost, lostPort{len(f.found) + i, port, r.Value, labelsOfPods(doc)})
		}
	}
	f.found = append(f.found, found...)
	wants, known := wantsPorts[o.APIVersion+o.Kind]
	if !known {
		return
	}
	labels, _ := plain.Get(doc, wants.selector)
	selects, _ := labels.(map[string]any)
	list, _ := plain.Get(doc, wants.list)
	ports, _ := list.([]any)
	for _, port := range ports {
		of, _ := port.(map[string]any)
		if name, is := of[wants.field].(string); is && len(selects) > 0 {
			f.targets = append(f.targets, target{o.Kind + " " + o.Name, wants.field, name, selects})
		}
	}
}

// schema is that of a custom kind whose definition comes with the chart; nil for others. Definitions may be large:
// only files that can matter are parsed.
func (f *faults) schema(o Object) map[string]any {
	if scheme.Scheme.Recognizes(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)) {
		return nil
	}
	key := o.APIVersion + o.Kind
	if of, known := f.schemas[key]; known {
		return of
	}
	all := Schemas{}
	for _, file := range f.definitions {
		if !bytes.Contains(file.Data, []byte(o.Kind)) || !bytes.Contains(file.Data, []byte("x-kubernetes-list-type")) {
			continue
		}
		docs, _ := bounded.YAMLDocuments(file.Data) // an error is told when it is applied
		for _, doc := range docs {
			var crd map[string]any
			if yaml.Unmarshal(doc, &crd) == nil {
				all.Add(crd)
			}
		}
	}
	if f.schemas == nil {
		f.schemas = Schemas{}
	}
	f.schemas[key] = all[key]
	return all[key]
}

// Schemas are those of CustomResourceDefinitions, by version and kind: "example.com/v1Lamp".
type Schemas map[string]map[string]any

// Add notes the schema of each version of a definition.
func (s Schemas) Add(crd map[string]any) {
	spec, _ := crd["spec"].(map[string]any)
	kind, _ := plain.Get(spec, []string{"names", "kind"})
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		of, _ := plain.Get(version, []string{"schema", "openAPIV3Schema"})
		s[fmt.Sprintf("%v/%v%v", spec["group"], version["name"], kind)], _ = of.(map[string]any)
	}
}

// KeyFaults are those of an object whose lists have a key twice, as [plain.OnePerKey] finds them.
func KeyFaults(c *tree.Chart, file string, doc, schema map[string]any) (repeated []plain.Repeated, found []Fault) {
	_, repeated = plain.OnePerKey(doc, schema)
	f, o := faults{t: Input{Chart: c}}, objectOf(doc)
	for _, r := range repeated {
		if o.Hook && !r.Invalid {
			continue // made by a create, which takes it
		}
		found = append(found, Fault{
			Template: file, Line: cmp.Or(f.nthLine(file, f.lines(file, o, r.List), 2, r.Field, r.Value), f.line(file, o, r.List)),
			Text: fmt.Sprintf("%s %s: %s", o.Kind, o.Name, r), Warns: !r.Refused,
		})
	}
	return repeated, found
}

// all are the faults once each file was looked at. A name of a port that is not applied is no mere warning when a
// Service of the release wants it.
func (f *faults) all() []Fault {
	for _, lost := range f.lost {
		for _, wants := range f.targets {
			if wants.port != lost.port || !selected(lost.labels, wants.selects) {
				continue
			}
			one := &f.found[lost.fault]
			one.Warns = false
			one.Text = fmt.Sprintf("%s; %s has %s %s, which would lead nowhere: give it the number %s", one.Text, wants.of, wants.field, wants.port, lost.number)
			break
		}
	}
	return f.found
}

func labelsOfPods(doc map[string]any) map[string]any {
	labels, found := plain.Get(doc, []string{"spec", "template", "metadata", "labels"})
	if !found {
		labels, _ = plain.Get(doc, []string{"metadata", "labels"})
	}
	of, _ := labels.(map[string]any)
	return of
}

func selected(labels, wanted map[string]any) bool {
	for key, v := range wanted {
		if labels[key] != v {
			return false
		}
	}
	return true
}

func typeOf(v any) string {
	switch v.(type) {
	case bool:
		return "true or false"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a text"
	}
	return "a number"
}
