package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.starlark.net/syntax"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
)

// renderTime bounds the rendering of one chart.
const renderTime = 20 * time.Second

// chance are the template functions that give another text each time.
var chance = [...]string{
	"now", "ago", "randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt", "uuidv4", "shuffle",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "genPrivateKey",
	"htpasswd", "bcrypt", "encryptAES",
}

// charts renders each chart with the values that are there before any hook has run.
func (c *checker) charts() {
	slots := make(chan struct{}, workers)
	var busy sync.WaitGroup
	var mu sync.Mutex
	for _, m := range c.modules {
		if m.Tree.Chart == nil || m.Err != nil || c.values[m.Name].broken {
			continue
		}
		slots <- struct{}{}
		busy.Go(func() {
			defer func() { <-slots }()
			crds, files := c.chart(m)
			mu.Lock()
			defer mu.Unlock()
			c.subcharts[m.Name] = files
			for _, text := range crds {
				c.kinds.addCRDs([]byte(text))
			}
		})
	}
	busy.Wait()
}

// chart renders one chart and returns its manifests that define kinds, and the crds/ of its
// subcharts that are on.
func (c *checker) chart(m *generation.Module) (crds []string, files []tree.File) {
	ctx, cancel := context.WithTimeout(c.ctx, renderTime)
	defer cancel()
	view, err := hook.ChartValues(ctx, c.gen.Host, m, c.view(m), nil, time.Unix(0, 0), silent{})
	if err != nil {
		c.addError("charts", m.Name, err)
		return nil, nil
	}
	target := release.Target{Module: m.Name, Name: m.Decl.Release, Namespace: cmp.Or(m.Decl.Namespace, "starling-system"), Chart: m.Tree.Chart, Values: view, Installs: m.Decl.Installs, Lookup: m.Decl.Lookup}
	o := c.o.Renderer.Offline(ctx, target, append(chance[:], "lookup")...)
	looks := map[string]bool{}
	for _, call := range o.Calls {
		looks[call.File] = looks[call.File] || call.Function == "lookup"
	}
	c.notAllowed(m, o)
	for _, wrong := range o.Wrong {
		c.add(Finding{Severity: Error, Check: "charts", Module: m.Name, File: c.chartFile(m, wrong.File), Message: wrong.Line})
	}
	for _, f := range o.CRDs { // those of packed subcharts too
		_, path, _ := strings.Cut(f.Path, "/")
		files = append(files, tree.File{Path: c.chartFile(m, path), Data: f.Data})
	}
	for _, call := range o.Calls {
		if call.Function == "lookup" {
			if len(m.Decl.Lookup) == 0 && len(o.Lookups) == 0 { // not with these values
				c.add(Finding{Severity: Note, Check: "charts", Module: m.Name, File: c.chartFile(m, call.File), Line: call.Line,
					Message: "the template calls lookup, and module(lookup = […]) allows nothing"})
			}
			continue
		}
		// Beside a lookup it is kept from an earlier time, as a rule; and with these
		// values it may not be called at all.
		severity, what := Warning, "each render differs, so each change of the values changes this too"
		if looks[call.File] || !o.Differs {
			severity, what = Note, "where it is used, each render may differ"
		}
		f := Finding{Severity: severity, Check: "charts", Module: m.Name, File: c.chartFile(m, call.File), Line: call.Line, Message: "the template calls " + call.Function + ": " + what}
		if f.File == m.Tree.Dir { // in a packed subchart
			f.Line, f.Message = 0, fmt.Sprintf("%s:%d: %s", call.File, call.Line, f.Message)
		}
		c.add(f)
	}
	c.chartReads(m, o.Reads)
	if o.Err != nil {
		c.notRendered(m, o, len(looks) > 0 && slices.Contains(slices.Collect(maps.Values(looks)), true))
		return crds, files
	}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		crds = append(crds, c.manifests(m, name, o.Files[name])...)
	}
	return crds, files
}

// notAllowed tells of what the chart holds and reads and its module.star does not name.
func (c *checker) notAllowed(m *generation.Module, o release.Offline) {
	add := func(param, what string, list []release.Missing, lines map[string][]string) {
		for _, missing := range list {
			c.mu.Lock()
			lines[m.Name] = append(lines[m.Name], missing.Line)
			c.mu.Unlock()
			f := Finding{Severity: Error, Check: "charts", Module: m.Name, File: m.Tree.Dir, Message: what, Hint: "if that is right, add to module(" + param + " = […]) of module.star: " + missing.Line}
			if missing.File != "" {
				f.File = c.chartFile(m, missing.File)
			}
			c.add(f)
		}
	}
	add("installs", "the chart holds more than everyday kinds in its namespace, so the release is refused", o.Installs, c.installs)
	add("lookup", "the chart looks up what it may not read, so it does not render", o.Lookups, c.lookups)
}

// notRendered says why, as badly as it is: what hooks or users set may be missing only.
func (c *checker) notRendered(m *generation.Module, o release.Offline, looks bool) {
	text := o.Err.Error()
	f := Finding{Severity: Error, Check: "charts", Module: m.Name, Message: text}
	if at := begins.FindStringSubmatch(text); at != nil {
		if _, path, ok := strings.Cut(at[1], "/"); ok {
			f.File, f.Message = c.chartFile(m, path), text[len(at[0]):]
			f.Line, _ = strconv.Atoi(at[2])
			f.Col, _ = strconv.Atoi(at[3])
			if f.Col > 0 {
				f.Col++ // templates count columns from 0
			}
		}
	}
	switch {
	case o.Broken:
	case looks:
		f.Severity, f.Message = Note, "not rendered, it asks the cluster (lookup): "+f.Message
	case c.hooksSet(m) || len(c.values[m.Name].composer.CheckHelm()) > 0:
		f.Severity, f.Message = Note, "not rendered, values are missing that hooks or users set: "+f.Message
	default:
		f.Severity, f.Message = Warning, "does not render with its default values: "+f.Message
		f.Hint = "give them a default, or name what users must set in x-required-for-helm of the schema"
	}
	if f.File == "" {
		f.File = m.Tree.Dir
	}
	c.add(f)
}

// manifests looks at the objects of one rendered template; it returns those that
// define kinds.
func (c *checker) manifests(m *generation.Module, name, text string) (crds []string) {
	_, path, _ := strings.Cut(name, "/")
	docs := releaseutil.SplitManifests(text)
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		doc := docs[key]
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			c.add(Finding{Severity: Error, Check: "charts", Module: m.Name, File: c.chartFile(m, path), Message: "what it renders to is no YAML: " + strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")})
			continue
		}
		if object == nil {
			continue
		}
		kind, _ := object["kind"].(string)
		if version, _ := object["apiVersion"].(string); kind == "" || version == "" {
			c.add(Finding{Severity: Error, Check: "charts", Module: m.Name, File: c.chartFile(m, path), Message: "what it renders to is no object: apiVersion or kind is missing"})
		}
		for _, u := range unknownFields(object) {
			c.unknownField(m, path, kind, u)
		}
		c.addCustom(customObject{m, path, object})
		if kind == "CustomResourceDefinition" {
			crds = append(crds, doc)
		}
	}
	return crds
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
		if of := c.moduleOf(path); of != m.Name && of != "global" && of != "" {
			continue
		}
		sets := false
		syntax.Walk(s.file, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok {
				switch s.builtin(call.Fn) {
				case "values.set", "values.default", "values.merge", "values.patch":
					sets = true
				}
			}
			return !sets
		})
		if sets {
			return true
		}
	}
	return false
}
