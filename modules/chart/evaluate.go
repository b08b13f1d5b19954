package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/bounded"
	plain "github.com/starling-operator/starling/runtime/object"
)

// maxRendered is how much text a chart may render to. A release that does not fit into Helm's
// Secret is refused later on; that is 1 MiB, packed.
const maxRendered = 16 << 20

// job is all that a chart's evaluation depends on, the answers to its lookups aside. It
// and what comes of it travel between processes.
type job struct {
	// Kind is one of the jobs below.
	Kind            string
	Chart           string
	Files           []File
	Name, Namespace string
	// Values are plain data as JSON, see packPlain.
	Values   []byte
	Upgrade  bool
	Revision int
	Caps     *helm.Capabilities
	// Calls are the functions that jobOffline reports, Lookup what the templates may look up.
	Calls  []string
	Lookup []builtins.Grant
}

const (
	jobRender  = "render"
	jobOffline = "offline"
	jobCRDs    = "crds"
	jobWritten = "written"
)

// outcome is what came of a job.
type outcome struct {
	// Files are the rendered templates by path, notes aside.
	Files map[string]string
	// Notes are those of the chart itself.
	Notes string
	// Err is why there are none, as Helm says it.
	Err string
	// Offline is that of jobOffline, but for Files and Err.
	Offline Offline
	// CRDs are the files of jobCRDs.
	CRDs []File
	// Written is what jobWritten tells.
	Written []Written
}

func newJob(kind string, t Input) (job, error) {
	values, err := packPlain(t.Values)
	if err != nil {
		return job{}, fmt.Errorf("the values are not plain data: %w", err)
	}
	return job{Kind: kind, Chart: t.Chart.Name, Files: t.Chart.Files, Name: t.Name, Namespace: t.Namespace, Values: values, Lookup: t.Lookup}, nil
}

// target is the part of a target that the job knows.
func (j job) target() (Input, error) {
	values, err := unpackPlain(j.Values)
	return Input{Name: j.Name, Namespace: j.Namespace, Chart: &Chart{Name: j.Chart, Files: j.Files}, Values: values, Lookup: j.Lookup}, err
}

// How says as what a chart is rendered.
type How struct {
	Caps *helm.Capabilities
	// Upgrade: as an upgrade, else as an install.
	Upgrade  bool
	Revision int
}

// Rendered is what a chart renders to.
type Rendered struct {
	// Files are the rendered templates by path, notes aside.
	Files map[string]string
	// Notes are those of the chart itself.
	Notes string
	// Err is why there are none, as Helm says it; it may quote values.
	Err string
}

// Render renders a chart; lookup answers what its templates look up. The error is that of the process which renders, or
// of ctx.
func (r *Renderer) Render(ctx context.Context, t Input, how How, lookup helm.Lookup) (Rendered, error) {
	out, err := r.job(ctx, jobRender, t, how, lookup)
	return Rendered{out.Files, out.Notes, out.Err}, err
}

// CRDs are the files under crds/ of a chart and of its enabled subcharts; wrong is Err of [Rendered].
func (r *Renderer) CRDs(ctx context.Context, t Input) (files []File, wrong string, err error) {
	out, err := r.job(ctx, jobCRDs, t, How{}, nil)
	return out.CRDs, out.Err, err
}

func (r *Renderer) job(ctx context.Context, kind string, t Input, how How, lookup helm.Lookup) (outcome, error) {
	j, err := newJob(kind, t)
	if err != nil {
		return outcome{}, err
	}
	j.Caps, j.Upgrade, j.Revision = how.Caps, how.Upgrade, how.Revision
	out, err := r.do(ctx, j, lookup)
	if err != nil {
		return outcome{}, fmt.Errorf("rendering chart %s: %w", j.Chart, err)
	}
	return out, nil
}

// do evaluates the chart in this process: nothing bounds what that takes. lookup answers
// its lookups; without it they find nothing.
func (j job) do(lookup helm.Lookup) (out outcome) {
	err := helm.Guard(func() error {
		t, err := j.target()
		if err != nil {
			return err
		}
		ch, err := Installable(t.Chart)
		if err != nil {
			out.Offline.Broken = true
			return err
		}
		switch j.Kind {
		case jobRender:
			out.Files, out.Notes, err = renderChart(t, ch, lookup, j.Caps, j.Upgrade, j.Revision)
		case jobOffline:
			out.Offline = renderOffline(t, ch, j.Caps, func(f string) bool { return slices.Contains(j.Calls, f) })
			out.Files, err, out.Offline.Err = out.Offline.Files, out.Offline.Err, nil
			out.Offline.Files = nil
		case jobCRDs:
			err = helm.Enable(ch, plain.CopyPlain(t.Values).(map[string]any))
			out.CRDs = helm.CRDs(ch)
		case jobWritten:
			out.Written, err = writtenIn(t, ch, j.Caps)
		default:
			err = fmt.Errorf("no job %q", j.Kind)
		}
		return err
	})
	if err != nil {
		out.Err = err.Error()
	}
	return out
}

// renderChart renders a chart that was loaded for this.
func renderChart(t Input, ch *helm.Chart, lookup helm.Lookup, caps *helm.Capabilities, upgrade bool, revision int) (files map[string]string, notes string, err error) {
	files, err = helm.Render(ch, plain.CopyPlain(t.Values).(map[string]any), helm.Options{
		Name: t.Name, Namespace: t.Namespace, Revision: revision, IsInstall: !upgrade, IsUpgrade: upgrade,
	}, caps, lookup)
	if err != nil {
		return nil, "", err
	}
	notes = files[ch.Name()+"/templates/NOTES.txt"]
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	return files, notes, checkRendered(files)
}

// checkRendered refuses what the parsers that come next should not be given.
func checkRendered(files map[string]string) error {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if total += len(files[name]); total > maxRendered {
			return fmt.Errorf("the chart renders to more than %d MiB, with %s", maxRendered>>20, name)
		}
		for _, doc := range plain.Documents(files[name]) {
			if err := bounded.CheckYAML([]byte(doc)); err != nil {
				return fmt.Errorf("%s: a document that it renders to %w", name, err)
			}
		}
	}
	return nil
}

// packPlain writes plain data as JSON from which unpackPlain reads the same: a float that is whole stays one.
func packPlain(m map[string]any) ([]byte, error) {
	return json.Marshal(plain.Change(plain.CopyPlain(m), markFloat))
}

func unpackPlain(data []byte) (map[string]any, error) {
	var m map[string]any
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &m)
	return m, err
}

func markFloat(v any) any {
	f, is := v.(float64)
	if !is {
		return v
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eEIN") {
		text += ".0"
	}
	return json.Number(text)
}
