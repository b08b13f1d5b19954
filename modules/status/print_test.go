package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func ptr[T any](v T) *T { return &v }

func sample() Status {
	return Status{
		Instance: "starling/starling", Version: "v0.1.0", Leader: true, Generation: 2,
		Config: Config{State: ConfigHeld, Reason: "ConfigMap starling/starling is gone; its last content stays in force",
			Problems: []string{`ingresNginx: no module has this key, did you mean "ingressNginx"?`}},
		Modules: []Module{
			{Name: "cert-manager", State: ModuleReady, Enabled: true, Since: ago(3 * time.Hour),
				Release: &Release{Name: "cert-manager", Namespace: "cert-manager", Revision: 12},
				Drifted: []Drifted{{Object: "Deployment cert-manager/webhook", Missing: true}, {Object: "ClusterRole cert-manager", By: []string{"kubectl-edit"}}}},
			{Name: "foo", State: ModuleOff, Reason: "add `fooEnabled: true` to values.yaml or module(enabled=True)"},
			{Name: "ingress-nginx", State: ModuleFailed, Enabled: true, Since: ago(90 * time.Second),
				LastError: "render: templates/a.yaml:3: nil pointer\nevaluating \x1b[31m.Values.x", NextTry: ptr(now.Add(20 * time.Second)),
				Problems: []string{"config ingressNginx: web.replicas: must be an integer", "another"}},
			{Name: "naïve-ünit", State: ModuleBlocked, Enabled: true, Reason: "waits for ingress-nginx", NextTry: ptr(ago(time.Second)), Since: now},
		},
		Hooks: []Hook{
			{ID: "global/hooks/nodes.star:discover", Module: "global", State: HookOK, LastRun: ptr(ago(5 * time.Second)),
				Duration: Duration(1534 * time.Microsecond), Runs: 4, Snapshots: map[string]int{"nodes": 3}},
			{ID: "tune", Module: "sysctl-tuner", State: HookFailed, LastRun: ptr(ago(time.Minute)), Duration: Duration(2345 * time.Millisecond),
				Runs: 2, Failures: 2, Attempt: 2, LastError: "hooks/tune.star:3:5: boom", NextTry: ptr(now.Add(4 * time.Second)), NotServed: []string{"acme.io/v1/Foo"}},
			{ID: "late", Module: "sysctl-tuner", State: HookWaiting},
			{ID: "review", Module: "sysctl-tuner", State: HookWaiting, Reason: "outside of a cluster the API server does not find this starling by a Service"},
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestGolden(t *testing.T) {
	s := sample()
	modules := func(modules []Module, o Options) func(io.Writer) error {
		return func(w io.Writer) error { return PrintModules(w, modules, o) }
	}
	hooks := func(o Options) func(io.Writer) error {
		return func(w io.Writer) error { return PrintHooks(w, s.Hooks, o) }
	}
	encoded := func(format string) func(io.Writer) error {
		return func(w io.Writer) error { return Encode(w, format, s) }
	}
	tests := []struct {
		file  string
		write func(io.Writer) error
	}{
		{"modules.txt", modules(s.Modules, Options{Now: now})},
		{"modules_color.txt", modules(s.Modules, Options{Now: now, Color: true})},
		{"modules_wide.txt", modules(s.Modules, Options{Now: now, Wide: true})},
		{"hooks_wide.txt", hooks(Options{Now: now, Wide: true})},
		{"no_modules.txt", modules([]Module{}, Options{Now: now})},
		{"hooks.txt", hooks(Options{Now: now})},
		{"status.json", encoded("json")},
		{"status.yaml", encoded("yaml")},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.write(&b); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
					t.Errorf("spaces at the end of %q", line)
				}
			}
			golden(t, tt.file, b.Bytes())
		})
	}
}

// Rows that come later stand below those that are there, without another head.
func TestATableGoesOn(t *testing.T) {
	o, modules := Options{Now: now, Widths: &Widths{}}, sample().Modules
	var b bytes.Buffer
	for _, some := range [][]Module{modules[1:3], modules[1:2], modules[:1], modules[1:2]} {
		if err := PrintModules(&b, some, o); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "modules_go_on.txt", b.Bytes())
}

func TestEncodeErrors(t *testing.T) {
	for format, want := range map[string]string{
		"xml": `output format "xml" is not one of json, yaml`,
		"":    `output format "" is not one of json, yaml`,
	} {
		err := Encode(&bytes.Buffer{}, format, sample())
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", format, err, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	var b bytes.Buffer
	if err := Encode(&b, "json", sample()); err != nil {
		t.Fatal(err)
	}
	var got Status
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Texts from the cluster neither steer the terminal nor turn the order of what is read
// around.
func TestTextsFromTheClusterAreTame(t *testing.T) {
	var out strings.Builder
	err := PrintModules(&out, []Module{{Name: "web", State: ModuleFailed, LastError: "image \u202egnp.exe\u2066 \x1b[31m"}}, Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\u202e\u2066\x1b") {
		t.Errorf("got %q", out.String())
	}
}

// The cell names the field of a contest as module(ignore=) does.
func TestTheCellOfAContest(t *testing.T) {
	for want, d := range map[string]Drifted{
		"contested by argo in Deployment/web spec.replicas": {Object: "Deployment shop/web", Contested: true, By: []string{"argo", "kubectl"}, Fields: []string{"spec.replicas", "spec.paused"}},
		"contested by argo in ClusterRole/web":              {Object: "ClusterRole web", Contested: true, By: []string{"argo"}},
		"contested in ConfigMap/web data.text":              {Object: "ConfigMap shop/web", Contested: true, Fields: []string{"data.text"}},
	} {
		m := Module{Drifted: []Drifted{{Object: "Secret shop/web", Missing: true}, d}}
		if got := m.Drift(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
