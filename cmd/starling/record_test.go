package main

import (
	"encoding/base64"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// testKey is the key of all records of scripts.
var testKey = make([]byte, record.KeySize)

// makeRecords is the command "records FOLDER TREE KEYFILE" of scripts: it runs the tests
// of a tree, and keeps the runs in the state folder as a starling that ran them would.
func makeRecords(t *testing.T, ts *testscript.TestScript, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: records FOLDER TREE KEYFILE")
	}
	key, err := record.ParseKey(testKey)
	ts.Check(err)
	store, err := record.OpenStore(record.StoreOptions{
		Dir: live.RecordsDir(ts.MkAbs(args[0])), Key: key, Process: "demo", Version: shortVersion(),
	})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(base64.StdEncoding.EncodeToString(testKey)+"\n"), 0o600))
	read, err := tree.ReadDir(ts.MkAbs(args[1]), tree.Options{})
	ts.Check(err)
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	runs, last := uint64(0), map[uint64]uint64{} // by the number in the world of its test
	ts.Check(testrunner.Run(t.Context(), testrunner.Options{Tree: read, Generation: g, Std: stdlib.FS, Record: func(trace *record.Trace) {
		runs++
		last[trace.Run], trace.Run = runs, runs
		ts.Check(store.Put(trace))
	}, Uncommitted: func(run uint64, err error) {
		ts.Check(store.Uncommitted(last[run], err))
	}}, func(f testrunner.File) {
		if f.Failed() {
			ts.Fatalf("%s: %v %+v", f.Path, f.Err, f.Tests)
		}
	}))
}
