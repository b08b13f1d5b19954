package modules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

func condition(name string, is bool, reason, text string) metav1.Condition {
	out := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: cut(text)}
	if is {
		out.Status = metav1.ConditionTrue
	}
	return out
}

// stateOf is what Ready, Reconciling and Stalled are in a state. They mean what kstatus has them
// mean: one that reconciles will change by itself, one that is stalled needs somebody.
var stateOf = map[status.ModuleState]struct {
	ready                metav1.ConditionStatus
	reason               string
	reconciling, stalled bool
}{
	status.ModuleReady:        {ready: metav1.ConditionTrue, reason: "Ready"},
	status.ModuleOff:          {ready: metav1.ConditionFalse, reason: "Off"},
	status.ModulePaused:       {ready: metav1.ConditionFalse, reason: "Paused"},
	status.ModuleStarting:     {ready: metav1.ConditionUnknown, reason: "Starting", reconciling: true},
	status.ModuleWaiting:      {ready: metav1.ConditionUnknown, reason: "Waiting", reconciling: true},
	status.ModuleBlocked:      {ready: metav1.ConditionUnknown, reason: "Blocked", reconciling: true},
	status.ModuleReleasing:    {ready: metav1.ConditionUnknown, reason: "Releasing", reconciling: true},
	status.ModuleUninstalling: {ready: metav1.ConditionFalse, reason: "Uninstalling", reconciling: true},
	status.ModuleFailed:       {ready: metav1.ConditionFalse, reason: "Failed", reconciling: true},
	status.ModuleBroken:       {ready: metav1.ConditionFalse, reason: "Broken", stalled: true},
}

// progress says how far the module has come. One that is ready tells what is wrong nonetheless: kubectl get modules
// shows the message of Ready.
func progress(m status.Module, hooks []status.Hook) (ready, reconciling, stalled metav1.Condition) {
	is := stateOf[m.State]
	text := cmp.Or(m.Reason, m.LastError)
	if m.State == status.ModuleReady && text == "" {
		if text = status.Failing(hooks); text == "" && len(m.Problems) > 0 {
			text = m.Problems[0]
		}
	}
	if m.Upgrading {
		is.ready, is.reason, is.reconciling = metav1.ConditionUnknown, "Upgrading", true
	}
	why := is.reason
	switch {
	case m.State == status.ModuleFailed && m.Stalled:
		is.reconciling, is.stalled = false, true
	case m.State == status.ModuleFailed:
		why = "Retrying"
	}
	ready = condition("Ready", false, is.reason, text)
	ready.Status = is.ready
	return ready, condition("Reconciling", is.reconciling, why, ""), condition("Stalled", is.stalled, is.reason, "")
}

// enabled says whether the module is switched on, and enabled() does not say no.
func enabled(m status.Module) metav1.Condition {
	if m.Enabled {
		return condition("Enabled", true, "On", "")
	}
	return condition("Enabled", false, "Off", m.Reason)
}

// refusedValues begins the error of a release whose values do not pass a schema.
const refusedValues = "values: "

// valuesValid says whether all that the user asks for is in force.
func valuesValid(m status.Module) metav1.Condition {
	switch {
	case len(m.Config.Refused) > 0:
		text := strings.Join(m.Config.Refused, "; ") + "; the last good values stay in force"
		return condition("ValuesValid", false, "Refused", text)
	case strings.HasPrefix(cmp.Or(m.LastError, m.Reason), refusedValues):
		return condition("ValuesValid", false, "Invalid", cmp.Or(m.LastError, m.Reason))
	}
	return condition("ValuesValid", true, "Valid", strings.Join(m.Config.Unused, "; "))
}

// Refusal is the answer to a change of spec.values that does not pass, with what is wrong; "" for nothing.
func Refusal(wrong []string) string {
	if len(wrong) == 0 {
		return ""
	}
	return cut(strings.Join(wrong, "; ")) + "; correct spec.values: nothing was changed"
}

// hooksHealthy says whether the last run of each hook has succeeded.
func hooksHealthy(hooks []status.Hook) metav1.Condition {
	if len(hooks) == 0 {
		return condition("HooksHealthy", true, "NoHooks", "")
	}
	if text := status.Failing(hooks); text != "" {
		return condition("HooksHealthy", false, "Failing", text)
	}
	return condition("HooksHealthy", true, "Healthy", "")
}

// released says whether the release is that of the chart and the values as they are now.
func released(m status.Module, r *Release) metav1.Condition {
	switch {
	case m.State == status.ModuleReady && r == nil:
		return condition("Released", false, "NoChart", "the module has no chart")
	case r == nil:
		return condition("Released", false, "NotInstalled", "")
	case m.Released && !m.Upgrading:
		return condition("Released", true, "Released", "release "+r.String())
	case m.State == status.ModuleFailed && m.LastError != "":
		return condition("Released", false, "Failed", m.LastError)
	}
	reason := stateOf[m.State].reason
	if m.Upgrading {
		reason = "Upgrading"
	}
	return condition("Released", false, reason, "release "+r.String()+" stays as it is meanwhile")
}

// changedByOthers is the reason of Drifted while nobody does it again and again.
const changedByOthers = "Drifted"

// drifted says whether others have changed objects of the release that are not put right. One that
// somebody changes again and again goes before. Where nobody sees some of them, it is not known.
func drifted(m status.Module) metav1.Condition {
	unseen := strings.Join(m.Unseen, "; ")
	if len(m.Drifted) == 0 && unseen == "" {
		return condition("Drifted", false, "AsReleased", "")
	}
	if len(m.Drifted) == 0 {
		out := condition("Drifted", false, "NotSeen", unseen)
		out.Status = metav1.ConditionUnknown
		return out
	}
	first, reason := m.Drifted[0], changedByOthers
	if i := slices.IndexFunc(m.Drifted, func(d status.Drifted) bool { return d.Contested }); i >= 0 {
		first, reason = m.Drifted[i], "Contested"
	}
	text := first.Object
	switch {
	case first.Contested:
		if text += " is contested by " + by(first); len(first.Fields) > 0 {
			text += " in " + first.Fields[0]
		}
	case first.Missing:
		text += " was deleted"
	default:
		text += " was changed by " + by(first)
	}
	if n := len(m.Drifted) - 1; n > 0 {
		text = fmt.Sprintf("%s; and %d more differ: starling get module %s", text, n, m.Name)
	}
	if first.Remedy != "" {
		text += ". " + first.Remedy
	}
	if unseen != "" {
		text += "; " + unseen
	}
	return condition("Drifted", true, reason, text)
}

func by(d status.Drifted) string {
	if len(d.By) == 0 {
		return "somebody"
	}
	return d.By[0]
}
