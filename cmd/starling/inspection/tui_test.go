package inspection

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
)

// The title of the screen says that a cluster is simulated, so no note does.
func TestTheScreenOfDevHasNoNote(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := instance.Instance{Name: instance.DefaultName, Namespace: "ops", StateDir: dir, Dev: true}
	if err := os.MkdirAll(filepath.Dir(at.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", at.Socket())
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = status.Status{Leader: true, Simulated: true}
		if strings.HasSuffix(r.URL.Path, "queues") {
			answer = []status.Queue{}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}}
	server.Start()
	t.Cleanup(server.Close)
	looks := tuiFlags{target: instance.Target{Dev: true, Instance: at}}
	if seen, err := looks.source().Look(t.Context()); err != nil || !seen.Status.Simulated || len(seen.Notes) > 0 {
		t.Errorf("%+v, %v", seen, err)
	}
}
