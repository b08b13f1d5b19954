package layers

import (
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// Sight is the values as a run about one subject sees them. It does not change, and may be
// used from any goroutine.
type Sight struct {
	subject string
	own     *values.Composer
	kept    []effect.ValueOp // what the subject has set before and still sets
	global  map[string]any
	others  map[string]bool // switches that other global hooks have set; nil for a module
}

// For returns what a run about a subject sees; kept is what the subject has set before and
// still sets.
func (m *Module) For(subject string, kept []effect.ValueOp) *Sight {
	s := &Sight{subject: subject, own: m.values, kept: kept, global: m.in.global.composed}
	if m.isGlobal() {
		s.others = map[string]bool{}
		for name, v := range m.in.switches.WithHook(subject, nil).Compose() {
			s.others[name] = v == true
		}
	}
	return s
}

// Compose returns the values with what the run has set so far.
func (s Sight) Compose(ops []effect.ValueOp) (map[string]any, error) {
	section, switches := slices.Concat(s.kept, ops), map[string]bool(nil)
	var err error
	if s.others != nil {
		if section, switches, err = values.SplitGlobal(section); err != nil {
			return nil, err
		}
	}
	v, err := s.own.For(s.subject, section)
	if err != nil {
		return nil, err
	}
	if s.others != nil {
		return values.GlobalView(v, s.others, switches), nil
	}
	return values.ModuleView(v, s.global), nil
}

// Secrets are the texts of values that hooks have set as secrets. They do not change; the
// zero Secrets are none.
type Secrets struct{ own, global *values.Composer }

// Secrets are those of a module's values.
func (m *Module) Secrets() Secrets { return Secrets{m.values, m.in.global.values} }

// Texts returns them.
func (s Secrets) Texts() []string {
	switch s.own {
	case nil:
		return nil
	case s.global:
		return s.own.SecretTexts()
	}
	return append(s.own.SecretTexts(), s.global.SecretTexts()...)
}

// RefuseConfig says why what a hook makes of the user's config would not come into force. The hook is
// whose code has asked for it, digest identifies that.
func (m *Module) RefuseConfig(hook, digest string, next, last map[string]any) error {
	return m.refused("config", hook, digest, func() []values.Problem { return m.values.CheckConfig(next, last) })
}

// Composer composes the values as they are now. It does not change, and may be used from any
// goroutine.
func (m *Module) Composer() *values.Composer { return m.values }

// CheckHelm says why no chart must be rendered with the values.
func (m *Module) CheckHelm() []values.Problem {
	if why := m.tooMuch(m.composed); why != "" {
		return []values.Problem{{Module: m.gen.Name, Message: why}}
	}
	return m.values.CheckHelm()
}

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
