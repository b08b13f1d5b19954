package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/helm"
)

// serveCharts makes a process of this test binary one that evaluates charts.
const serveCharts = "STARLING_TEST_SERVE_CHARTS"

func TestMain(m *testing.M) {
	if most, err := time.ParseDuration(os.Getenv(serveCharts)); err == nil {
		if err := serve(os.Stdin, os.Stdout, limitProcess(most)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func newTestRenderer(t *testing.T, o RendererOptions) *Renderer {
	t.Helper()
	o.Command = processes(t, 2*time.Second)
	return NewRenderer(o)
}

// processes makes processes whose jobs may take so much processor time.
func processes(t *testing.T, most time.Duration) func() *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = []string{serveCharts + "=" + most.String()}
		return cmd
	}
}

// renderText renders a chart with a renderer, nil: in this process. Nothing is there that it looks up, and there are no
// kinds but ConfigMaps.
func renderText(ctx context.Context, r *Renderer, in Input) (Rendered, error) {
	out, err := r.Render(ctx, in, How{Caps: chartutil.DefaultCapabilities, Revision: 1}, func(_, kind, _, name string) (map[string]any, error) {
		switch {
		case kind != "ConfigMap":
			return nil, fmt.Errorf("the cluster does not serve kind %s", kind)
		case name == "":
			return map[string]any{"items": []any{}}, nil
		}
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	})
	if err == nil && out.Err != "" {
		err = errors.New(InSource(in.Chart, out.Err))
	}
	return out, err
}

// Where there is little memory a chart may take little, and its error says so.
func TestAChartWithLittleMemory(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{Memory: leastRenderMemory})
	_, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", `a: {{ repeat 5000000 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" | len }}`)})
	if got := errorText(err); !strings.Contains(got, "it takes more than 32 MiB of memory") || !strings.Contains(got, "give the container more memory") {
		t.Error(got)
	}
}

// A chart that takes all there is ends a process, and that is not this one; the next one
// renders.
func TestChartsThatTakeAllThereIs(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{})
	memory, endless, calls, yaml := "it takes more than 256 MiB of memory", "a template loops without end", "a template calls itself without end", "helm gave up"
	alias := "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 20_000) + "]"
	for _, tt := range []struct {
		name, text string
		wants      []string
	}{
		{"until", "a: {{ until 1000000000 | len }}", []string{memory, endless, yaml}},
		{"repeat", `a: {{ repeat 2000000000 "xxxx" }}`, []string{memory}},
		{"nindent", `a: {{ "x" | nindent 2000000000 }}`, []string{memory}},
		{"range", "{{ range 1000000000000 }}{{ end }}", []string{endless}},
		{"range that writes", "{{ range 1000000000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}", []string{memory, endless}},
		{"tpl", `{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`, []string{calls, memory, endless}},
		{"fromYaml", `{{ $_ := set .Values "x" (fromYaml .Values.bomb) }}{{ len .Values.x.b }}`, []string{memory, endless}},
		{"manifest", "{{ .Values.bomb }}", []string{"web/templates/0.yaml: a document that it renders to is too large: with its aliases"}},
		{"much", `a: "{{ repeat 20000000 "x" }}"`, []string{"the chart renders to more than 16 MiB"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", tt.text), Values: map[string]any{"bomb": alias}})
			found := raced && strings.Contains(errorText(err), endless) // all takes longer
			for _, want := range tt.wants {
				found = found || strings.Contains(errorText(err), want)
			}
			if !found || strings.Contains(errorText(err), "\n") {
				t.Errorf("%v, want one of %q", err, tt.wants)
			}
			got, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", "a: b")})
			if err != nil || got.Files["web/templates/0.yaml"] != "a: b" {
				t.Errorf("the next chart: %v %v", got.Files, err)
			}
		})
	}
}

// Another process renders what this one would render.
func TestChartsInAnotherProcess(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{Idle: time.Millisecond})
	values := map[string]any{
		"i": int64(1), "big": int64(9007199254740993), "f": 1.0, "g": 1.5e30, "s": "text \u2028 <b>", "t": true, "nil": nil,
		"list": []any{int64(1), 2.0, nil, map[string]any{}, []any{}}, "map": map[string]any{"a": map[string]any{"f": -0.5}},
	}
	for _, text := range []string{
		"a: {{ toJson .Values }}",
		`a: {{ range $k, $v := .Values }}{{ $k }}={{ kindOf $v }} {{ end }}{{ range .Values.list }}{{ kindOf . }} {{ end }}`,
		`a: "{{ .Release.Name }} {{ .Release.Namespace }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Capabilities.KubeVersion }} {{ .Chart.Name }}"`,
		`a: {{ lookup "v1" "ConfigMap" "x" "y" | len }}`,
		`a: {{ lookup "v1" "ConfigMap" "x" "" | toJson }}`,
		`a: {{ lookup "v1" "Nonsense" "x" "y" | len }}`,
		"a: {{ .Values.none.more }}",
		`{{ fail "no way" }}`,
		"{{ if }}",
	} {
		target := Input{Name: "web", Namespace: "apps", Values: values, Chart: with(chartOf("web", text), "templates/NOTES.txt", "hello {{ .Release.Name }}")}
		want, wantErr := renderText(t.Context(), nil, target)
		got, err := renderText(t.Context(), r, target)
		if !reflect.DeepEqual(got, want) || errorText(err) != errorText(wantErr) {
			t.Errorf("%s:\n%+v, %v, want\n%+v, %v", text, got, err, want, wantErr)
		}
		wantOffline, gotOffline := (*Renderer)(nil).Offline(t.Context(), target, chartutil.DefaultCapabilities, nil, "lookup", "fail"), r.Offline(t.Context(), target, chartutil.DefaultCapabilities, nil, "lookup", "fail")
		if errorText(gotOffline.Err) != errorText(wantOffline.Err) {
			t.Errorf("%s: offline %v, want %v", text, gotOffline.Err, wantOffline.Err)
		}
		gotOffline.Err, wantOffline.Err = nil, nil
		if len(wantOffline.Files) == 0 {
			gotOffline.Files, wantOffline.Files = nil, nil
		}
		if !reflect.DeepEqual(gotOffline, wantOffline) {
			t.Errorf("%s: offline\n%+v, want\n%+v", text, gotOffline, wantOffline)
		}
	}
}

// A process that the kernel has killed while it had nothing to do fails no chart.
func TestAnIdleProcessThatIsKilled(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{Idle: time.Hour})
	render := func(text string) error {
		_, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", text)})
		return err
	}
	if err := render("a: b"); err != nil || len(r.idle) != 1 {
		t.Fatalf("%v, %d processes wait", err, len(r.idle))
	}
	for range 3 {
		r.idle[0].kill()
		if err := render("a: b"); err != nil || len(r.idle) != 1 {
			t.Fatalf("%v, %d processes wait", err, len(r.idle))
		}
	}
	if err := render("{{ range 1000000000000 }}{{ end }}"); !strings.Contains(errorText(err), "a template loops without end") {
		t.Errorf("got %v", err)
	}
}

// A job that takes much memory is done all the same where the kernel has killed processes
// that had nothing to do.
func TestIdleProcessesThatAreKilledBeforeALargeJob(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{Idle: time.Hour})
	r.o.Command = processes(t, maxRenderTime) // a slow machine takes a second for so much memory
	j, err := newJob(jobRender, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", largeText)})
	if err != nil {
		t.Fatal(err)
	}
	j.Caps = chartutil.DefaultCapabilities
	idle := func() {
		c, err := start(r.o.Command(), maxRenderMemory)
		if err != nil {
			t.Fatal(err)
		}
		c.kill()
		r.put(c)
	}
	for range 3 {
		idle()
		if out, err := r.doIn(t.Context(), r.large, j, nil); err != nil || out.Err != "" {
			t.Fatal(err, out.Err)
		}
		idle()
		if out, err := r.do(t.Context(), j, nil); err != nil || out.Err != "" {
			t.Fatal(err, out.Err)
		}
	}
	if len(r.idle) > 0 && !raced {
		t.Errorf("%d processes wait that have done large jobs", len(r.idle))
	}
}

// largeText takes 100 MiB of memory.
const largeText = `a: {{ repeat 50000000 "xx" | len }}`

// Charts that take all memory at once take together what fits into a container beside the
// operator.
func TestChartsThatTakeMemoryAtOnce(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil || raced {
		t.Skip("the memory of the processes cannot be told here")
	}
	const most = 640 << 20
	r := newTestRenderer(t, RendererOptions{})
	done := make(chan error)
	texts := []string{
		`{{ $x := repeat 120000000 "xx" }}{{ range 1000000000000 }}{{ end }}`,
		`{{ $x := repeat 25000000 "x" }}{{ range 1000000000000 }}{{ end }}`,
		`{{ range 300 }}{{ $_ := set $.Values (printf "a%d" .) (until 100000) }}{{ end }}`,
		`a: {{ repeat 300000000 "xx" | len }}`,
	}
	for i := range 3 * len(texts) {
		go func() {
			_, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", texts[i%len(texts)])})
			done <- err
		}()
	}
	peak := 0
	for left := 3 * len(texts); left > 0; {
		select {
		case err := <-done:
			if left--; err == nil {
				t.Error("a chart without end renders")
			}
		case <-time.After(time.Millisecond):
			peak = max(peak, memoryOfChildren(t))
		}
	}
	t.Logf("they took %d MiB at most", peak>>20)
	if peak > most {
		t.Errorf("they took %d MiB at most, more than %d", peak>>20, most>>20)
	}
}

// memoryOfChildren is the memory in bytes that the processes take that this one has
// started, what they share with it aside.
func memoryOfChildren(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	parent := fmt.Sprintf("PPid:\t%d\n", os.Getpid())
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may have ended
		if _, own, found := strings.Cut(string(text), "RssAnon:"); found && strings.Contains(string(text), parent) {
			kib := 0
			if _, err := fmt.Sscan(own, &kib); err != nil {
				t.Fatal(err)
			}
			all += kib << 10
		}
	}
	return all
}

// A large chart waits for its turn, and others need none.
func TestLargeChartsTakeTurns(t *testing.T) {
	if raced {
		t.Skip("all charts are small beside the race detector")
	}
	r := newTestRenderer(t, RendererOptions{Most: 1})
	r.o.Command = processes(t, maxRenderTime)
	render := func(ctx context.Context, text string) error {
		_, err := renderText(ctx, r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", text)})
		return err
	}
	if err := render(t.Context(), largeText); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- render(t.Context(), `{{ $x := repeat 50000000 "xx" }}{{ range 1000000000000 }}{{ end }}{{ len $x }}`)
	}()
	for len(r.large) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := render(t.Context(), "a: b"); err != nil {
		t.Error(err)
	}
	boom := errors.New("timed out after 1s")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(boom) })
	if err := render(ctx, largeText); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the others had to wait for its end: %v", err)
	default:
	}
	if err := render(t.Context(), largeText); err != nil {
		t.Error(err)
	}
	if err := <-ended; !strings.Contains(errorText(err), "a template loops without end") {
		t.Errorf("got %v", err)
	}
}

// A render whose caller has gone is ended.
func TestAChartNobodyWaitsFor(t *testing.T) {
	r := newTestRenderer(t, RendererOptions{Most: 1})
	boom := errors.New("timed out after 1s")
	ctx, cancel := context.WithCancelCause(t.Context())
	in := Input{Name: "web", Namespace: "apps", Chart: chartOf("web", `{{ lookup "v1" "ConfigMap" "x" "y" }}`)}
	_, err := r.Render(ctx, in, How{Caps: chartutil.DefaultCapabilities}, func(_, _, _, _ string) (map[string]any, error) {
		cancel(boom)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if errorText(err) != "rendering chart web: timed out after 1s" || !errors.Is(err, boom) {
		t.Error(err)
	}
	if got, err := renderText(t.Context(), r, Input{Name: "web", Namespace: "apps", Chart: chartOf("web", "a: b")}); err != nil {
		t.Errorf("the slot is not free: %v %v", got, err)
	}
}

// The manifest of a revision is as Helm stores it, and hooks stand apart.
func TestPartsOfAChart(t *testing.T) {
	hooks, manifest, err := helm.Parts(map[string]string{
		"web/templates/a.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"{{ not a template }}\"}\n",
		"web/charts/db/templates/b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n",
		"web/templates/job.yaml":         "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {helm.sh/hook: pre-install}}\n",
	})
	want := "---\n# Source: web/charts/db/templates/b.yaml\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n" +
		"---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"{{ not a template }}\"}\n"
	if err != nil || manifest != want || len(hooks) != 1 || hooks[0].Name != "j" {
		t.Errorf("%q %v %v", manifest, hooks, err)
	}
}

// pack is a chart as `helm package` makes it.
func pack(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for i := 0; i < len(files); i += 2 {
		if err := tape.WriteHeader(&tar.Header{Name: "sub/" + files[i], Size: int64(len(files[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tape.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCheckFiles(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40) + "]\n"
	sub := pack(t, "Chart.yaml", "name: sub\n", "values.yaml", bomb)
	for _, tt := range []struct {
		name, path, data, want string
	}{
		{"fine", "Chart.yaml", "name: web", ""},
		{"Chart.yaml", "Chart.yaml", bomb, "Chart.yaml is too large: with its aliases"},
		{"a subchart", "charts/sub/values.yaml", bomb, "charts/sub/values.yaml is too large: with its aliases"},
		{"a packed subchart", "charts/sub.tgz", string(sub), "charts/sub.tgz!values.yaml is too large: with its aliases"},
		{"packed twice", "charts/sub.tgz", string(pack(t, "charts/sub.tgz", string(sub))), "charts/sub.tgz!charts/sub.tgz!values.yaml is too large: with its aliases"},
		{"no packed chart", "charts/sub.tgz", "nonsense", ""},
		{"zeros", "charts/sub.tgz", string(pack(t, "a", strings.Repeat("\x00", maxUnpacked))), "charts/sub.tgz: packed charts hold more than 32 MiB"},
		{"zeros inside", "charts/sub.tgz", string(pack(t, "charts/s.tgz", string(pack(t, "a", strings.Repeat("\x00", maxUnpacked))))), "charts/sub.tgz!charts/s.tgz: packed charts hold more than 32 MiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkFiles([]File{{Path: tt.path, Data: []byte(tt.data)}})
			if tt.want == "" && err != nil || !strings.HasPrefix(errorText(err), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
