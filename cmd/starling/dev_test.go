package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A save is answered at once; a broken one says what is broken; Ctrl-C ends it.
func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "quickstart")
	if err := os.CopyFS(dir, os.DirFS("../../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	nodes, config := filepath.Join(t.TempDir(), "nodes.yaml"), filepath.Join(t.TempDir(), "config.yaml")
	write := func(file, text string) {
		t.Helper()
		next := filepath.Join(t.TempDir(), "next") // nobody sees half of a file
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o644), os.Rename(next, file)); err != nil {
			t.Fatal(err)
		}
	}
	const node = "---\n{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {conditions: [{type: Ready, status: \"True\"}]}}\n"
	write(nodes, fmt.Sprintf(node, "a"))
	write(config, "{}\n")
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	cmd := newRootCommand()
	cmd.SetArgs([]string{"dev", dir, "-f", nodes, "--config", config})
	cmd.SetOut(w)
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx); w.Close() }()

	lines := bufio.NewScanner(r)
	await := func(want string) {
		t.Helper()
		var seen []string
		for lines.Scan() {
			seen = append(seen, lines.Text())
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("%q was not said:\n%s", want, strings.Join(seen, "\n"))
	}
	edit := func(file, old, now string) {
		t.Helper()
		file = filepath.Join(dir, file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(file, strings.Replace(string(data), old, now, 1))
	}
	await("  ok, 2 of 2 tests passed (2 of 2 modules, ")
	edit("hello/values.yaml", "Hello from", "Hi from")
	await(`~ data.greeting: "Hello from Starling" -> "Hi from Starling"`)
	edit("global/cluster.star", "len(", "lenn(")
	await("  1 error, 0 of 2 tests passed (1 of 2 modules, ")
	await("undefined: lenn (did you mean len?)")
	edit("global/cluster.star", "lenn(", "len(")
	await("  ok, 2 of 2 tests passed, nothing else changed (1 of 2 modules, ")
	// The files beside the tree.
	write(nodes, fmt.Sprintf(node, "a")+fmt.Sprintf(node, "b"))
	await("  ok, 2 objects changed (0 of 2 modules, ")
	await("~ spec.replicas: 1 -> 2")
	write(config, "hello: {greeting: Good morning}\n")
	await(`~ data.greeting: "Hi from Starling" -> "Good morning"`)
	write(nodes, "{")
	await("nodes.yaml: ")
	write(nodes, fmt.Sprintf(node, "b"))
	await("~ spec.replicas: 2 -> 1")
	stop()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
