package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-starling":          func() { os.Exit(starling()) },
		"kubectl_complete-starling": func() { os.Exit(starling()) },
		"starling":                  func() { os.Exit(starling()) },
		"until":                     func() { os.Exit(until(os.Args[1], os.Args[2], os.Args[3:])) },
		"gunzipped":                 func() { os.Exit(gunzipped()) },
		"terminal":                  func() { os.Exit(onScreen(os.Args[1], os.Args[2:])) },
		"webget":                    func() { os.Exit(webGet(os.Args[1], append(os.Args[2:], "")[0])) },
	})
}

// TestScripts runs the command line as people do. A script's line "instance FOLDER FILE" starts a fake running
// instance: it answers on the socket in FOLDER with the status in FILE. "cluster KUBECONFIG FILE" starts a small API
// server, whose URL is in API, with the objects of the list in FILE. "records FOLDER TREE KEYFILE" keeps runs in
// FOLDER. "freeport NAME" keeps a free port in NAME, "collector NAME FILE" serves one of spans, "certificate FOLDER"
// makes one. "exec until REGEXP COMMAND" runs a command until its output is like that, "exec terminal COMMAND" runs
// one on a terminal, and shows what is seen there; SIGINT is Ctrl-C. "exec webget URL [FOLDER]" shows what is there,
// for the client with that certificate. "repository CHART.YAML" serves a repository of charts, to whose URL CHARTS
// turns in that file.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			return raced, nil
		},
		Setup: func(env *testscript.Env) error {
			// A socket's path has about 100 bytes; the script's own folder may
			// take most of them.
			short, err := os.MkdirTemp("", "s")
			if err != nil {
				return err
			}
			env.Defer(func() { os.RemoveAll(short) })
			env.Setenv("TMPDIR", short)
			env.Setenv("SHORT", short)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"instance":   serveInstance,
			"example":    copyExample,
			"plant":      plant,
			"repository": func(ts *testscript.TestScript, _ bool, args []string) { serveRepository(ts, args[0]) },
			"seed":       seed,
			"freeport":   freePort,
			"collector":  serveCollector,
			"certificate": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(writeCertificate(ts.MkAbs(args[0])))
			},
			"cluster": func(ts *testscript.TestScript, _ bool, args []string) { serveCluster(t, ts, args[0], args[1]) },
			"records": func(ts *testscript.TestScript, _ bool, args []string) { makeRecords(t, ts, args) },
			"uidfolder": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("UIDFOLDER", filepath.Join(ts.Getenv("TMPDIR"), fmt.Sprintf("starling-%d", os.Getuid())))
			},
		},
	})
}

// copyExample copies one of the examples: "example NAME".
func copyExample(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[0]), os.DirFS(filepath.Join("..", "..", "examples", args[0]))))
}

// serveRepository serves the chart redis in two versions, by TLS that commands of the script trust.
func serveRepository(ts *testscript.TestScript, file string) {
	dir := ts.MkAbs("repository")
	for _, version := range []string{"1.2.0", "1.3.0"} {
		// The author's editor puts a mark before texts.
		template := &chart.File{Name: "templates/c.yaml", Data: []byte("\ufeffapiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")}
		_, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "redis", Version: version}, Templates: []*chart.File{template}}, dir)
		ts.Check(err)
	}
	index, err := repo.IndexDirectory(dir, "")
	ts.Check(err)
	index.SortEntries()
	ts.Check(index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644))
	srv := httptest.NewTLSServer(http.FileServer(http.Dir(dir)))
	ts.Defer(srv.Close)
	cert := ts.MkAbs("repository.pem")
	ts.Check(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o644))
	ts.Setenv("SSL_CERT_FILE", cert)
	ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.ReplaceAll(ts.ReadFile(file), "CHARTS", srv.URL)), 0o644))
}

// plant puts a mistake into a file: "plant FILE RIGHT WRONG" puts the text in the file
// WRONG where that in RIGHT stands, which must be there once.
func plant(ts *testscript.TestScript, _ bool, args []string) {
	text, right, wrong := ts.ReadFile(args[0]), ts.ReadFile(args[1]), ts.ReadFile(args[2])
	if n := strings.Count(text, right); n != 1 {
		ts.Fatalf("%s stands %d times in %s", args[1], n, args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, right, wrong, 1)), 0o644))
}

// seed keeps in SEED which seed the last command has named.
func seed(ts *testscript.TestScript, _ bool, _ []string) {
	_, rest, found := strings.Cut(ts.ReadFile("stdout"), "with -seed ")
	if !found {
		ts.Fatalf("no seed was named")
	}
	number, _, _ := strings.Cut(rest, " ")
	ts.Setenv("SEED", number)
}

func serveCluster(t *testing.T, ts *testscript.TestScript, kubeconfig, file string) {
	api := apitest.New(t)
	var objects []map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &objects))
	for _, obj := range objects {
		api.Put(obj)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: api.Config().Host}
	config.Contexts["production"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "production"
	ts.Setenv("API", api.Config().Host)
	ts.Check(clientcmd.WriteToFile(*config, ts.MkAbs(kubeconfig)))
}

func serveInstance(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: instance FOLDER FILE")
	}
	var st status.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &st))
	srv, err := admin.New(admin.Options{
		Listen:   "127.0.0.1:0",
		Metrics:  prometheus.NewRegistry(),
		Ready:    func() (bool, string) { return true, "" },
		Released: func() (bool, string) { return true, "" },
		Socket:   (&instance.Instance{StateDir: args[0]}).Socket(),
		Name:     instance.DefaultName,
		Status:   func(context.Context) (status.Status, error) { return st, nil },
		Queues:   func(context.Context) ([]status.Queue, error) { return nil, nil },
		Explain:  explainHello, RecordsKey: func(context.Context) ([]byte, error) { return testKey, nil },
		Replica: func() status.Replica {
			return status.Replica{
				Name: "here", Ready: true, Since: time.Now(),
				Leader: st.Leader, Holder: st.Holder, Generation: st.Generation, ReloadFailed: st.ReloadFailed,
			}
		},
	})
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	ts.Defer(func() {
		cancel()
		ts.Check(<-done)
	})
}

// explainHello is what a fake running instance answers to `starling explain values`.
func explainHello(_ context.Context, module string) (values.ExplainInput, error) {
	if module != "hello" {
		return values.ExplainInput{}, fmt.Errorf("there is no module %q; did you mean hello?", module)
	}
	ops := []effect.ValueOp{{Op: effect.OpSet, Path: []string{"replicas"}, Value: int64(3), Pos: "hello/hooks/a.star:4"}}
	return values.ExplainInput{
		Notes:   []string{"the module is off, its hooks do not run"},
		Process: "k3f9",
		Section: values.SectionSources{
			Section: values.Section{
				Name: "hello", Key: "hello", Config: map[string]any{"replicas": int64(2)},
				Hooks: []values.HookLayer{{Hook: "hello/hooks/a.star:f", Ops: values.Located(nil, ops, &effect.Origin{Run: 7, At: time.Now().Add(-3 * time.Minute)})}},
			},
			ConfigName: "ConfigMap starling-system/starling", ConfigText: "replicas: 2",
		},
		Global: &values.SectionSources{},
		Read:   func(string) []byte { return nil },
	}, nil
}
