package engine

import (
	"time"

	"github.com/starling-operator/starling/modules/graph"
	"github.com/starling-operator/starling/runtime/engine/agenda"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/generation"
)

// ground is what the work on one module may go by beside the module itself. Its methods change nothing.
type ground struct {
	common
	opts   Options
	now    time.Time
	config *userconfig.Config
	agenda *agenda.Agenda
	ops    uint64 // the number of the last action that waits for an answer
}

// turn is the work on one module, and where it says what has to be done. Of other modules it knows what is under way,
// and no more: what concerns several is the [Engine]'s.
type turn struct {
	ground  // of common, it changes switched alone
	out     []Action
	askedBy map[uint64]*module // by the numbers of actions that wait for their answers
	watches map[string]*hook   // by the id of a watch
	wrote   causes.Writes
}

// common is what all modules go by beside their own machines. Once it differs, all are looked at again.
type common struct {
	gen      *generation.Whole // in force
	exits    *graph.Graph      // of all modules
	placed   bool              // the places of all modules are kept
	globals  verdicts.Global   // see standGlobal
	switched int               // how often a switch or a pause has moved, or the config's state; see [Engine.back], too
}
