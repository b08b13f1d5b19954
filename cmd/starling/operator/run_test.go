package operator

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

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/live"
)

// A process that must not run beside another one leaves its marks alone: what the other one
// evaluates has ended no process.
func TestASecondProcessLeavesTheMarksOfTheFirstOneAlone(t *testing.T) {
	t.Cleanup(func() { zerolog.SetGlobalLevel(zerolog.TraceLevel) })
	at := instance.Instance{StateDir: t.TempDir()}
	lock, err := admin.Lock(at.Socket(), "starling")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	marks, err := live.OpenMarks(at.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := marks.Evaluating("a filter", "code"); err != nil {
		t.Fatal(err)
	}
	cmd := newRunCommand("v0.0.0")
	cmd.SetArgs([]string{"--modules", t.TempDir(), "--state-dir", at.StateDir, "--log-level", "error"})
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "another starling named starling runs") {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(filepath.Join(at.StateDir, "runs"))
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
	cmd := newRunCommand("v0.0.0")
	cmd.SetArgs([]string{"--modules", modules, "--kubeconfig", kubeconfig, "--namespace", "ops", "--state-dir", filepath.Join(folder, "state"), "--listen", "127.0.0.1:0"})
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Error(err)
	}
}
