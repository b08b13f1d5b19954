package plan

import (
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/sim"
)

// controllers are what controllers do about the children of parents.
func controllers(w *sim.World, m *masker) []status.Parent {
	out := []status.Parent{}
	for _, p := range w.Decided() {
		p.Failure, p.Waits = m.Text(p.Failure), m.Text(p.Waits)
		if p.Actions == nil {
			p.Actions = []status.Action{}
		}
		for i := range p.Actions {
			a := &p.Actions[i]
			a.Part, a.Why = m.Text(a.Part), m.Text(a.Why)
		}
		out = append(out, p)
	}
	return out
}

var opSigns = map[reconcile.Op]rune{reconcile.OpCreate: '+', reconcile.OpApply: '~', reconcile.OpDelete: '-', reconcile.OpRelease: '-'}

// parent shows what is done about the children of one parent.
func (p *printer) parent(of status.Parent) {
	if len(of.Actions) == 0 {
		p.line(0, ' ', "controller %s, %s: it waits: %s", of.Controller, of.Key, of.Waits)
		return
	}
	p.line(0, ' ', "controller %s, %s:", of.Controller, of.Key)
	for _, a := range of.Actions {
		sign, acts := opSigns[reconcile.Op(a.Op)]
		if !acts {
			sign = ' '
		}
		p.line(1, sign, "%s %s  # %s", a.Op, a.Child, a.Why)
	}
}
