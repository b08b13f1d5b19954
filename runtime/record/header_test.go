package record

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
)

func TestCause(t *testing.T) {
	nodes, asked := builtins.Event{Type: "modified", Binding: "nodes"}, builtins.Event{Type: "schedule", Binding: "schedule", Asked: true}
	for want, events := range map[string][]builtins.Event{
		"2 schedule, nodes: modified":            {{Type: "schedule"}, nodes, {Type: "schedule"}},
		"somebody asked for it":                  {asked, {Type: "sync", Binding: "nodes", Asked: true}},
		"nodes: modified, somebody asked for it": {nodes, asked, asked},
	} {
		if got := Cause(events); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
