// Package chart renders the charts of modules, and says in words for people what is wrong with one: in which template,
// at which line, and what to do.
//
// Templates may take all memory or all time, so a [Renderer] evaluates each chart in a process beside this one, within
// limits. Nothing here reaches a cluster: what a chart looks up is asked of the caller.
package chart

import (
	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/tree"
)

// File is one file of a chart, or one file of CRDs.
type File = tree.File

// Chart is a chart's own files.
type Chart = tree.Chart

// Input is what a chart is rendered with.
type Input struct {
	Module, Name, Namespace string
	// Chart is built from these files alone.
	Chart *Chart
	// Values are plain data: all that the chart sees under .Values, above its own values.yaml. They are not changed.
	Values map[string]any
	// Reads are the global values that the chart reads, nil: all.
	Reads *reads.Reads
	// Installs are the objects that the chart may hold beside everyday kinds in Namespace, Lookup what its templates may
	// read, as module(…) names them.
	Installs, Lookup []builtins.Grant
	// CRDs are the files of definitions beside the chart.
	CRDs []File
	// Test: the tests of the chart are objects of the release, too, which runs them and fails with them.
	Test bool
	// Labels are put on all objects, see [Label].
	Labels map[string]string
}
