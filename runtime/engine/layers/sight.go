package layers

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// For returns the values as a run about a subject sees them, by what the run has set so far;
// kept is what the subject has set before and still sets. The function holds nothing that
// changes.
func (m *Module) For(subject string, kept []effect.ValueOp) func([]effect.ValueOp) (map[string]any, error) {
	own, global := m.values, m.in.global.composed
	if !m.isGlobal() {
		return func(ops []effect.ValueOp) (map[string]any, error) {
			v, err := own.For(subject, slices.Concat(kept, ops))
			if err != nil {
				return nil, err
			}
			return values.ModuleView(v, global), nil
		}
	}
	others := map[string]bool{}
	for name, v := range m.in.switches.WithHook(subject, nil).Compose() {
		others[name] = v == true
	}
	return func(ops []effect.ValueOp) (map[string]any, error) {
		section, switches, err := values.SplitGlobal(slices.Concat(kept, ops))
		if err != nil {
			return nil, err
		}
		v, err := own.For(subject, section)
		if err != nil {
			return nil, err
		}
		return values.GlobalView(v, others, switches), nil
	}
}

// Secrets returns the texts of a module's values that hooks have set as secrets. The
// function holds nothing that changes.
func (m *Module) Secrets() func() []string {
	own, global := m.values, m.in.global.values
	return func() []string {
		if own == global {
			return own.SecretTexts()
		}
		return append(own.SecretTexts(), global.SecretTexts()...)
	}
}

// CheckConfig says what is wrong with what the user sets; last is what is in force.
func (m *Module) CheckConfig(next, last map[string]any) []values.Problem {
	return m.values.CheckConfig(next, last)
}

// CheckHelm says why no chart must be rendered with the values.
func (m *Module) CheckHelm() []values.Problem { return m.values.CheckHelm() }

// Section is what the values are made of.
func (m *Module) Section() values.Section {
	s := m.values.Section()
	s.Hooks = m.hooks(m.set, m.section)
	return s
}

// Switch is what global hooks say of a switch; nil: nothing.
func (l *Layers) Switch(name string) *bool {
	if on, ok := l.switches.Compose()[name].(bool); ok {
		return &on
	}
	return nil
}

// SwitchedBy is the subject that has set a switch, and how; nil: none has.
func (l *Layers) SwitchedBy(name string) (subject string, by *effect.ValueOp) {
	for _, at := range slices.Sorted(maps.Keys(l.global.set)) {
		for _, op := range l.global.set[at] {
			if _, isBool := op.Value.(bool); !isBool || len(op.Path) != 1 || op.Path[0] != name {
				continue
			}
			// Layers hold defaults first: what the same hook sets wins over them.
			if op.Op == effect.OpSet || op.Op == effect.OpDefault {
				subject, by = at, &op
			}
		}
	}
	return subject, by
}

// Basis is what the sight of a run rests on: it is equal as long as that is the same.
type Basis struct{ own, global, switches *values.Composer }

// Basis is that of now.
func (m *Module) Basis() Basis {
	b := Basis{own: m.values, global: m.in.global.values}
	if m.isGlobal() {
		b.switches = m.in.switches
	}
	return b
}
