package modules

import (
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// Tell puts into m all that the status of the object says of its module: so the process of an instance
// that leads tells those that stand by. It returns false when the status is none of this instance.
func (o Object) Tell(own effect.Instance, m *status.Module) bool {
	is := o.said(own)
	if is == nil {
		return false
	}
	m.State, m.LastError, m.NextTry, m.Release = status.ModuleState(is.State), is.LastError, nil, nil
	if is.NextTry != nil {
		m.NextTry = &is.NextTry.Time
	}
	if r := is.Release; r != nil {
		m.Release = &status.Release{Name: r.Name, Namespace: r.Namespace, Revision: r.Revision}
	}
	if ready := is.condition("Ready"); ready != nil {
		m.Reason, m.Since = ready.Message, ready.LastTransitionTime.Time
	}
	return true
}

// Revision is that of a release as the status of the object has it; 0: it says nothing of that release.
func (o Object) Revision(own effect.Instance, of status.Release) int {
	is := o.said(own)
	if is == nil || is.Release == nil || is.Release.Name != of.Name || is.Release.Namespace != of.Namespace {
		return 0
	}
	return is.Release.Revision
}

// said is the status that an instance has given the object of a module; nil: none.
func (o Object) said(own effect.Instance) *Status {
	if is := decode(o.Status); is != nil && is.Instance == nameOf(own) && is.State != noModule {
		return is
	}
	return nil
}
