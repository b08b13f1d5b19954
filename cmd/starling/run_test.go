package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/live"
)

// A process that must not run beside another one leaves its marks alone: what the other one
// evaluates has ended no process.
func TestASecondProcessLeavesTheMarksOfTheFirstOneAlone(t *testing.T) {
	f := runFlags{modules: t.TempDir(), instance: instance{Namespace: "ops", Name: "starling", StateDir: t.TempDir()}, log: logFlags{level: "error"}, access: access{qps: 1}, history: 1, lease: leaseFlags{live.DefaultLeaseTimes()}}
	t.Cleanup(func() { zerolog.SetGlobalLevel(zerolog.TraceLevel) })
	lock, err := admin.Lock(f.instance.socket(), "starling")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	marks, err := live.OpenMarks(f.instance.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := marks.Evaluating("a filter", "code"); err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "another starling named starling runs") {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(filepath.Join(f.instance.StateDir, "runs"))
	if err != nil || len(left) != 1 || left[0].Name() != "running" {
		t.Errorf("left of the marks: %v %v", left, err)
	}
}

// A process that is told to stop while it looks for the API server ends as any other one does.
func TestAProcessThatIsStoppedAsItBegins(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		<-r.Context().Done()
	}))
	defer server.Close()
	folder := t.TempDir()
	kubeconfig, modules := filepath.Join(folder, "kubeconfig"), filepath.Join(folder, "modules")
	err := errors.Join(os.MkdirAll(filepath.Join(modules, "web"), 0o755), os.WriteFile(filepath.Join(modules, "web", "module.star"), []byte("module()\n"), 0o600),
		os.WriteFile(kubeconfig, []byte("{clusters: [{name: a, cluster: {server: \""+server.URL+"\"}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	root := newRootCommand()
	root.SetArgs([]string{"run", "--modules", modules, "--kubeconfig", kubeconfig, "--namespace", "ops", "--state-dir", filepath.Join(folder, "state"), "--listen", "127.0.0.1:0"})
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(ctx); err != nil {
		t.Error(err)
	}
}
