package check

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/message"
	plain "github.com/starling-operator/starling/runtime/object"
)

// renderTime bounds the rendering of one chart.
const renderTime = 20 * time.Second

// chance are the template functions that give another text each time.
var chance = [...]string{
	"now", "ago", "randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "genPrivateKey",
	"htpasswd", "bcrypt", "encryptAES",
}

// charts renders each chart with the values that are there before any hook has run, for the kinds that the cluster
// serves and the tree defines. The kinds that a chart defines show only once it is rendered: charts that ask for kinds
// are rendered with those, too.
func (c *checker) charts() {
	for _, m := range c.modules {
		for _, f := range m.Tree.CRDs {
			c.defines(c.definitionsOf(f).kinds)
		}
	}
	c.caps = helm.WithKinds(c.served, c.own...)
	c.eachChart(func(m *generation.Module) {
		if out, err := c.renderModule(m); err == nil {
			for _, f := range out.CRDs { // those of packed subcharts too
				_, path, _ := strings.Cut(f.Path, "/")
				file := tree.File{Path: c.chartFile(m, path), Data: f.Data}
				c.mu.Lock()
				c.subcharts[m.Name] = append(c.subcharts[m.Name], file)
				c.mu.Unlock()
				c.defines(c.definitionsOf(file).kinds)
			}
			for _, one := range out.manifests {
				c.defines(one.serves)
			}
		}
	})
	c.caps = helm.WithKinds(c.served, c.own...)
	c.eachChart(c.chart)
}

// defines takes in kinds that the tree defines.
func (c *checker) defines(kinds []schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range kinds {
		c.kinds.add(k.GroupVersion().String(), k.Kind)
	}
	c.own = append(c.own, kinds...)
}

// eachChart looks at the charts that can be rendered, some at once. Those that wait for users have no values yet.
func (c *checker) eachChart(look func(*generation.Module)) {
	slots := make(chan struct{}, workers)
	var busy sync.WaitGroup
	for _, m := range c.modules {
		if m.Tree.Chart == nil || m.Err != nil || c.values[m.Name].broken || len(c.values[m.Name].composer.Unset()) > 0 {
			continue
		}
		slots <- struct{}{}
		busy.Go(func() {
			defer func() { <-slots }()
			look(m)
		})
	}
	busy.Wait()
}

// rendered is what a chart renders to, with its objects.
type rendered struct {
	chart.Offline
	manifests []manifest
}

// manifest is one document that a chart renders.
type manifest struct {
	path   string // of the template in the chart
	text   string
	object map[string]any
	err    error // why it is no YAML
	// unknown are fields that its kind does not have; wrong says that one has a value of another type.
	unknown []unknownField
	wrong   error
	// serves are the kinds that it defines.
	serves []schema.GroupVersionKind
}

// render renders a chart, unless that was done with the same values before.
func (c *checker) render(ctx context.Context, t chart.Input) rendered {
	caps := c.served // so that a kind more has no other chart rendered again
	if chart.AsksCapabilities(t.Chart.Files) {
		caps = c.caps
	}
	key := keyOf(t.Module, t.Name, t.Namespace, t.Chart.Name, t.Chart.Files, t.Values, t.Installs, t.Lookup, t.Test, caps)
	return c.cache.charts.of(key, func() (rendered, bool) {
		out := rendered{Offline: c.o.Renderer.Offline(ctx, t, caps, c.clusterWide, append(chance[:], "lookup")...)}
		for _, name := range slices.Sorted(maps.Keys(out.Files)) {
			out.manifests = append(out.manifests, manifestsOf(name, out.Files[name])...)
		}
		return out, ctx.Err() == nil
	})
}

// manifestsOf are the documents of one rendered template, empty ones aside.
func manifestsOf(name, text string) (out []manifest) {
	_, path, _ := strings.Cut(name, "/")
	for _, doc := range plain.Documents(text) {
		m := manifest{path: path, text: doc}
		if m.err = yaml.Unmarshal([]byte(doc), &m.object); m.err != nil {
			out = append(out, m)
		} else {
			out = append(out, m.parts()...)
		}
	}
	return out
}

// parts are the objects of a document: those of a list, which no server sees, or itself.
func (m manifest) parts() (out []manifest) {
	objects, err := plain.Objects(m.object)
	if err != nil {
		m.err = err
		return append(out, m)
	}
	for _, o := range objects {
		one := manifest{path: m.path, text: m.text, object: o}
		one.unknown, one.wrong = strictFields(o)
		if text, err := yaml.Marshal(o); err == nil && o["kind"] == "CustomResourceDefinition" {
			one.serves = kindsOf(text)
		}
		out = append(out, one)
	}
	return out
}

// renderModule renders the chart of a module with the values that are there before any hook has run.
func (c *checker) renderModule(m *generation.Module) (rendered, error) {
	ctx, cancel := context.WithTimeout(c.ctx, renderTime)
	defer cancel()
	view, err := hook.ChartValues(ctx, c.gen.Host, m, c.view(m), nil, time.Unix(0, 0), builtins.Silent{})
	if err != nil {
		return rendered{}, err
	}
	return c.render(ctx, chart.Input{
		Module: m.Name, Name: m.Decl.Release, Namespace: cmp.Or(m.Decl.Namespace, "starling-system"), Chart: m.Tree.Chart, Values: view,
		Installs: m.Decl.Installs, Lookup: m.Decl.Lookup, Test: m.Decl.Test,
	}), nil
}

// chart tells of one chart.
func (c *checker) chart(m *generation.Module) {
	out, err := c.renderModule(m)
	if err != nil {
		c.addError("charts", m.Name, err)
		return
	}
	o := out.Offline
	looks := map[string]bool{}
	for _, call := range o.Calls {
		looks[call.File] = looks[call.File] || call.Function == "lookup"
	}
	c.notAllowed(m, o)
	c.faults(m, o.Faults)
	for _, call := range o.Calls {
		if call.Function == "lookup" {
			if len(m.Decl.Lookup) == 0 && len(o.Lookups) == 0 { // not with these values
				const message = "the template calls lookup, and module(lookup = […]) allows nothing"
				f, _ := c.inChart(m, Note, call.File, call.Line, message)
				c.add(f)
			}
			continue
		}
		// Beside a lookup it is kept from an earlier time, as a rule; and with these
		// values it may not be called at all.
		severity, what := Warning, "each render differs, so each change of the values changes this too"
		if looks[call.File] || !call.Differs {
			severity, what = Note, "where it is used, each render may differ"
		}
		f, src := c.inChart(m, severity, call.File, call.Line, "the template calls "+call.Function+": "+what)
		if src == nil { // in a packed subchart
			f.Line, f.Message = 0, fmt.Sprintf("%s:%d: %s", call.File, call.Line, f.Message)
		}
		c.add(f)
	}
	c.chartReads(m, o.Reads)
	if o.Err != nil {
		c.notRendered(m, o, len(looks) > 0 && slices.Contains(slices.Collect(maps.Values(looks)), true))
		return
	}
	tests := false
	for _, one := range out.manifests {
		hooks, _, _ := unstructured.NestedString(one.object, "metadata", "annotations", helm.HookAnnotation)
		tests = tests || strings.Contains(hooks, "test")
		c.manifest(m, one)
	}
	if m.Decl.Test && !tests {
		c.add(Finding{Severity: Warning, Check: "charts", Module: m.Name, File: m.Tree.Dir, Hint: "wait = True waits for objects without tests",
			Message: "module(test = True), and with these values the chart has no test: no object with the annotation helm.sh/hook: test"})
	}
}

// notAllowed tells of what the chart holds and reads and its module.star does not name.
func (c *checker) notAllowed(m *generation.Module, o chart.Offline) {
	add := func(param, what string, list []chart.Missing, lines map[string][]string) {
		for _, missing := range list {
			if missing.Near != "" {
				f, src := c.inChart(m, Error, missing.File, 0, "there is no kind "+missing.Kind)
				f.Line, f.Hint = chart.LineOf(src, missing.Kind, "kind"), "did you mean "+missing.Near+"?"
				c.add(f)
				continue
			}
			c.mu.Lock()
			lines[m.Name] = append(lines[m.Name], missing.Line)
			c.mu.Unlock()
			f, _ := c.inChart(m, Error, missing.File, 0, what)
			f.Hint = "if that is right, add to module(" + param + " = […]) of module.star: " + missing.Line
			c.add(f)
		}
	}
	add("installs", "the chart holds more than everyday kinds in its namespace, so the release is refused", o.Installs, c.installs)
	add("lookup", "the chart looks up what it may not read, so it does not render", o.Lookups, c.lookups)
}

// notRendered says why, as badly as it is: what hooks or users set may be missing only.
func (c *checker) notRendered(m *generation.Module, o chart.Offline, looks bool) {
	text := o.Err.Error()
	f := Finding{Severity: Error, Check: "charts", Module: m.Name, Message: text}
	file, line, col, rest := placeOf(text)
	if _, path, ok := strings.Cut(file, "/"); ok {
		f.File, f.Line, f.Col, f.Message = c.chartFile(m, path), line, col, rest
		if f.Col > 0 {
			f.Col++ // templates count columns from 0
		}
	}
	switch {
	case o.Broken:
	case strings.Contains(text, chart.NoTemplate):
	case looks:
		f.Severity, f.Message = Note, "not rendered, it asks the cluster (lookup): "+f.Message
	case c.hooksSet(m) || len(c.values[m.Name].composer.CheckHelm()) > 0:
		f.Severity, f.Message = Note, "not rendered, values are missing that hooks or users set: "+f.Message
	default:
		f.Severity, f.Message = Warning, "does not render with its default values: "+f.Message
		if !strings.Contains(f.Message, "(write ") {
			f.Hint = c.missingValue(m, f.Message)
		}
	}
	f.File = cmp.Or(f.File, m.Tree.Dir)
	c.add(f)
}

// missingValue says what to do about a value that a template needs and nobody has set.
func (c *checker) missingValue(m *generation.Module, text string) string {
	const otherwise = "name what users must set in x-required-for-helm of the schema"
	path := chart.MissingValue(text)
	if path == nil {
		return "give them a default in " + m.Tree.Dir + "/values.yaml, or " + otherwise
	}
	if path[0] == m.Key && len(path) > 1 {
		return "values of the module stand without its name: write .Values." + strings.Join(path[1:], ".")
	}
	top := slices.Sorted(maps.Keys(m.Tree.Values))
	if near := message.Nearest(path[0], top); near != "" && !slices.Contains(top, path[0]) {
		return fmt.Sprintf("did you mean .Values.%s? else add %s: to %s/values.yaml", near, path[0], m.Tree.Dir)
	}
	return fmt.Sprintf("add %s to %s/values.yaml, or %s", chart.InMaps(path), m.Tree.Dir, otherwise)
}

// manifest looks at one document that a template has rendered.
func (c *checker) manifest(m *generation.Module, one manifest) {
	if one.err != nil {
		c.notYAML(m, one.path, one.text, one.err)
		return
	}
	kind, _ := one.object["kind"].(string)
	if version, _ := one.object["apiVersion"].(string); kind == "" { // of a kind without a version its faults tell
		f, _ := c.inChart(m, Error, one.path, 0, "what it renders to is no object: kind is missing")
		c.add(f)
	} else if _, gone := c.kinds.gone[version+" "+kind]; gone {
		c.goneKind(m, one.path, version, kind)
	}
	if file := c.chartFile(m, one.path); file != m.Tree.Dir {
		if data, err := fs.ReadFile(c.tree.Files, file); err == nil {
			c.boolKey("charts", m, file, data, one.object)
		}
	}
	for _, u := range one.unknown {
		c.unknownField(m, one.path, kind, one.text, u)
	}
	if at, want := wrongType(one.object, one.wrong); at != "" && !strings.HasPrefix(at, "metadata.") { // of those o.Faults tells
		c.wrongField(m, one.path, kind, at, want)
	}
	c.selects(m, one)
	c.addCustom(customObject{m, one.path, one.text, one.object})
}

// notYAML tells of a template that renders to no YAML: its line, and what it renders to there.
func (c *checker) notYAML(m *generation.Module, path, doc string, err error) {
	problem, line := chart.Problem(err, doc)
	f, src := c.inChart(m, Error, path, 0, "what it renders to is no YAML: "+problem)
	if src != nil {
		p := chart.PlaceOf(src, doc, line, problem)
		f.Line, f.Hint, f.rendered = p.Line, p.Hint, p.Rendered
	}
	c.add(f)
}

// inChart is a finding about a file of a chart, and the text of the file: nil for one that is not in the tree, as of a
// fetched chart. Such a finding is about the directory of the module.
func (c *checker) inChart(m *generation.Module, s Severity, path string, line int, message string) (Finding, []byte) {
	f := Finding{Severity: s, Check: "charts", Module: m.Name, File: c.chartFile(m, path), Line: line, Message: message}
	src, err := fs.ReadFile(c.tree.Files, f.File)
	if err != nil || f.File == m.Tree.Dir {
		return f, nil
	}
	return f, src
}

// chartFile returns where a file of a chart is in the tree.
func (c *checker) chartFile(m *generation.Module, path string) string {
	for _, p := range []string{m.Tree.Dir + "/" + path, m.Tree.Dir + "/chart/" + path} {
		if f, err := c.tree.Files.Open(p); err == nil {
			f.Close()
			return p
		}
	}
	return m.Tree.Dir
}

// hooksSet says whether hooks set values that the chart of a module may need: its own,
// or global ones.
func (c *checker) hooksSet(m *generation.Module) bool {
	for path, s := range c.files {
		if !s.sets {
			continue
		}
		if of := c.moduleOf(path); of == m.Name || of == "global" || of == "" {
			return true
		}
	}
	return false
}
