package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"starling": func() { os.Exit(starling()) },
	})
}

// TestScripts runs the command line as people do. A script's line
// "instance FOLDER FILE" starts a fake running instance: it answers on the socket
// in FOLDER with the status in FILE.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
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
			"instance": serveInstance,
			"uidfolder": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("UIDFOLDER", filepath.Join(ts.Getenv("TMPDIR"), filepath.Base(instancesDir())))
			},
		},
	})
}

func serveInstance(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: instance FOLDER FILE")
	}
	var st status.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &st))
	srv, err := server.New(server.Options{
		Listen:  "127.0.0.1:0",
		Metrics: prometheus.NewRegistry(),
		Ready:   func() (bool, string) { return true, "" },
		Socket:  socketIn(args[0]),
		Name:    defaultName,
		Status:  func(context.Context) (status.Status, error) { return st, nil },
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
