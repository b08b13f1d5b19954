package layers

import (
	"errors"
	"maps"
	"strings"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// Proposal is what the values of a module would be with what runs set that do not count yet.
type Proposal struct {
	m                *Module
	values, switches *values.Composer // switches of the global hooks alone
	set              map[string][]effect.ValueOp
}

// Propose returns the values as they are.
func (m *Module) Propose() *Proposal {
	p := &Proposal{m: m, values: m.values, set: map[string][]effect.ValueOp{}}
	if m.isGlobal() {
		p.switches = m.in.switches
	}
	return p
}

// Layer is what a subject sets.
func (p *Proposal) Layer(subject string) []effect.ValueOp {
	if ops, there := p.set[subject]; there {
		return ops
	}
	return p.m.set[subject]
}

// Set has what a subject sets count for what is checked after it.
func (p *Proposal) Set(subject string, ops []effect.ValueOp) {
	if values.Equal(p.Layer(subject), ops) {
		return
	}
	p.set[subject] = ops
	p.values = p.values.WithHook(subject, p.m.section(ops))
	if p.switches != nil {
		p.switches = p.switches.WithHook(subject, values.SwitchOps(ops))
	}
}

// Secrets are those of the values.
func (p *Proposal) Secrets() Secrets { return Secrets{p.values, p.m.in.global.values} }

// Check says why a subject must not set this: another one sets it, or a schema refuses it.
// The hook is whose code has asked for it, digest identifies that.
func (p *Proposal) Check(subject, hook, digest string, ops []effect.ValueOp) error {
	if len(ops) == 0 {
		return nil
	}
	if err := p.conflict(subject, ops); err != nil {
		return err
	}
	if len(p.m.gen.Decl.Exports) > 0 {
		if why := p.m.tooMuch(p.values.WithHook(subject, p.m.section(ops)).Compose()); why != "" {
			return errors.New("values refused: " + why)
		}
	}
	section := p.m.section(ops)
	return p.m.refused("values", hook, digest, func() []values.Problem { return p.values.CheckHook(subject, section) })
}

// refused says what a check finds wrong with the values, or the config, that a hook asks for; digest is of its code.
func (m *Module) refused(what, hook, digest string, check func() []values.Problem) error {
	var problems []values.Problem
	parts := func() []string { return []string{digest, m.gen.SchemasDigest()} }
	err := m.in.o.Evaluate(what+" of hook "+hook, parts, func() error {
		if problems = check(); len(problems) > 0 {
			return problems[0]
		}
		return nil
	})
	if len(problems) == 0 {
		return err
	}
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return errors.New(what + " refused: " + strings.Join(texts, "; "))
}

// conflict says whether another subject of the module sets what ops set.
func (p *Proposal) conflict(subject string, ops []effect.ValueOp) error {
	if p.switches == nil {
		return p.values.Conflict(subject, ops)
	}
	section, _, err := values.SplitGlobal(ops)
	if err != nil {
		return err
	}
	if p.values.Conflict(subject, section) == nil && p.switches.Conflict(subject, values.SwitchOps(ops)) == nil {
		return nil
	}
	all := maps.Clone(p.m.set)
	maps.Copy(all, p.set)
	whole := func(ops []effect.ValueOp) []effect.ValueOp { return ops } // with paths as the hook has them
	return values.Conflict(p.m.hooks(all, whole), subject, ops)
}
