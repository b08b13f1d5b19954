package modules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// Status is the status of a Module object, as its definition has it.
type Status struct {
	Instance           string             `json:"instance"`
	ObservedGeneration int64              `json:"observedGeneration"`
	State              string             `json:"state"`
	Release            *Release           `json:"release,omitempty"`
	LastError          string             `json:"lastError,omitempty"`
	NextTry            *metav1.Time       `json:"nextTry,omitempty"`
	Revisions          []Revision         `json:"revisions,omitempty"`
	LastRepair         *Repair            `json:"lastRepair,omitempty"`
	Conditions         []metav1.Condition `json:"conditions"`
}

// Release is the release of the module.
type Release struct {
	Name         string `json:"name"`
	Namespace    string `json:"namespace"`
	Revision     int    `json:"revision,omitempty"`
	ChartVersion string `json:"chartVersion,omitempty"`
}

// Revision is one revision that Starling has seen.
type Revision struct {
	Revision     int         `json:"revision"`
	ChartVersion string      `json:"chartVersion,omitempty"`
	Time         metav1.Time `json:"time"`
}

// Repair is that of objects of the release that others had changed.
type Repair struct {
	Time    metav1.Time `json:"time"`
	Message string      `json:"message"`
}

// RepairOf is the repair of these objects, of one at least. Edits are the fields of the first one that others had
// changed.
func RepairOf(objects []effect.Ref, edits []owned.Edit, at time.Time) *Repair {
	text := objects[0].String() + " was put right"
	if n := len(objects) - 1; n > 0 {
		text = fmt.Sprintf("%s and %d more were put right", objects[0], n)
	}
	if len(edits) > 0 {
		text += fmt.Sprintf(": %s had changed %s", cmp.Or(edits[0].By, "somebody"), edits[0].Path)
		if n := len(edits) - 1; n > 0 {
			text += fmt.Sprintf(" and %d more fields", n)
		}
		text += fmt.Sprintf("; module(ignore = [%q]) leaves it so", objects[0].Kind+"/"+objects[0].Name+" "+edits[0].Path.String())
	}
	return &Repair{Time: metav1.NewTime(at.UTC().Truncate(time.Second)), Message: text}
}

const (
	// mostRevisions is how many revisions a status has.
	mostRevisions = 10
	// mostMessage is how long a message is, in bytes.
	mostMessage = 1024
	// noModule is the state of an object whose name is that of no module.
	noModule = "no module"
)

// Facts are what the status of one module hangs on.
type Facts struct {
	// Module is what the engine shows of it, Hooks are its hooks.
	Module status.Module
	Hooks  []status.Hook
	// ChartVersion is the version of its chart in the tree; empty: it has none.
	ChartVersion string
	// Repair is the last one of this process; nil: there was none.
	Repair *Repair
	// Spec is what is in force by its object; nil: nothing.
	Spec map[string]any
}

// statusOf is the status that the object of a module should have. Before is the one that it had;
// nil: none is known. It is the same while the facts are: times come from the change alone.
func statusOf(instance string, f Facts, generation int64, before *Status, now time.Time) *Status {
	if before == nil {
		before = &Status{}
	}
	m := f.Module
	out := &Status{Instance: instance, ObservedGeneration: generation, State: string(m.State), LastError: cut(m.LastError)}
	if m.NextTry != nil {
		next := metav1.NewTime(m.NextTry.UTC().Truncate(time.Second))
		out.NextTry = &next
	} else if m.State == status.ModuleFailed && before.LastError == out.LastError {
		out.NextTry = before.NextTry // it is this one that is under way
	}
	out.release(f, before, now)
	if out.Release != nil {
		out.LastRepair = cmp.Or(f.Repair, before.LastRepair)
	}
	ready, reconciling, stalled := progress(m, f.Hooks)
	out.Conditions = []metav1.Condition{ready, enabled(m), valuesValid(m), hooksHealthy(f.Hooks), released(m, out.Release), drifted(m), reconciling, stalled}
	out.stamp(before, now)
	return out
}

// statusOfNone is the status of an object whose name is that of no module.
func statusOfNone(instance, name string, modules []string, generation int64, before *Status, now time.Time) *Status {
	out := &Status{Instance: instance, ObservedGeneration: generation, State: noModule}
	why := fmt.Sprintf("instance %s has no module %s; %s", instance, name, message.DidYouMean(name, modules, "its modules: starling get modules"))
	out.Conditions = []metav1.Condition{
		condition("Ready", false, "NoModule", why),
		condition("Reconciling", false, "NoModule", ""),
		condition("Stalled", true, "NoModule", why),
	}
	if before == nil {
		before = &Status{}
	}
	out.stamp(before, now)
	return out
}

// release notes the release, with its last revisions.
func (s *Status) release(f Facts, before *Status, now time.Time) {
	r := f.Module.Release
	if r == nil {
		return
	}
	s.Release = &Release{Name: r.Name, Namespace: r.Namespace, Revision: r.Revision}
	was := before.Release
	known := was != nil && was.Name == r.Name && was.Namespace == r.Namespace
	if known {
		s.Revisions = before.Revisions
	}
	switch {
	case known && (r.Revision == 0 || r.Revision == was.Revision): // 0: this process has not seen it yet
		s.Release.Revision, s.Release.ChartVersion = was.Revision, was.ChartVersion
	case r.Revision > 0:
		s.Release.ChartVersion = f.ChartVersion
		if known && r.Revision < was.Revision {
			s.Revisions = nil // it was installed anew
		}
		one := Revision{Revision: r.Revision, ChartVersion: f.ChartVersion, Time: metav1.NewTime(now.UTC().Truncate(time.Second))}
		s.Revisions = append([]Revision{one}, s.Revisions...)
		s.Revisions = s.Revisions[:min(len(s.Revisions), mostRevisions)]
	}
}

// stamp dates the conditions: one that says what it said before is as old as it was.
func (s *Status) stamp(before *Status, now time.Time) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.ObservedGeneration = s.ObservedGeneration
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		if was := before.condition(c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

func (s *Status) condition(name string) *metav1.Condition {
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == name })
	if i < 0 {
		return nil
	}
	return &s.Conditions[i]
}

// moving says that the state will change by itself soon, likely.
func (s *Status) moving() bool {
	switch status.ModuleState(s.State) {
	case status.ModuleStarting, status.ModuleReleasing, status.ModuleBlocked:
		return true
	}
	is := func(name, reason string) bool { c := s.condition(name); return c != nil && c.Reason == reason }
	return is("Reconciling", "Upgrading") || is("Drifted", changedByOthers)
}

// eventsOf are the Events about a change of the status; before is nil for an object that is new.
func eventsOf(before, after *Status) (out []effect.Event) {
	if before == nil {
		before = &Status{}
	}
	add := func(typ, reason, format string, a ...any) {
		out = append(out, effect.Event{Type: typ, Reason: reason, Message: fmt.Sprintf(format, a...)})
	}
	was, is := before.Release, after.Release
	switch {
	case is == nil && was != nil && after.State != noModule:
		add("Normal", "Uninstalled", "release %s/%s was uninstalled", was.Namespace, was.Name)
	case is == nil || is.Revision == 0:
	case was == nil && is.Revision == 1, was != nil && was.Revision == 0 && is.Revision == 1:
		add("Normal", "Installed", "release %s", is)
	case was != nil && is.Revision != was.Revision && was.Revision > 0:
		add("Normal", "Upgraded", "release %s", is)
	}
	if last, was := after.LastRepair, before.LastRepair; last != nil && (was == nil || !last.Time.Equal(&was.Time) || last.Message != was.Message) {
		add("Normal", "Healed", "%s", last.Message)
	}
	if d, was := after.condition("Drifted"), before.condition("Drifted"); d != nil && d.Status == metav1.ConditionTrue && (was == nil || was.Message != d.Message) {
		add("Warning", d.Reason, "%s", d.Message)
	}
	ready, last := after.condition("Ready"), before.condition("Ready")
	if failed(ready) && (!failed(last) || last.Message != ready.Message) {
		add("Warning", ready.Reason, "%s", ready.Message)
	}
	return out
}

// HookFailed is the reason of an Event about hooks that fail.
const HookFailed = "HookFailed"

// Failing are hooks whose failure people have been told, by id.
type Failing map[string]bool

// News returns the hooks that fail and have not been told of. They count as told from then on.
func (f *Failing) News(hooks []status.Hook) (fresh []status.Hook) {
	next := Failing{}
	for _, h := range hooks {
		if status.Failing([]status.Hook{h}) == "" {
			continue
		}
		if next[h.ID] = true; !(*f)[h.ID] {
			fresh = append(fresh, h)
		}
	}
	*f = next
	return fresh
}

// eventOfHooks tells of hooks that fail now and did not before, unless another Event of the same change does.
func (s *step) eventOfHooks(hooks []status.Hook, told Failing, before *Status) {
	if s.failing = told; told == nil && before != nil {
		was, is := before.condition("HooksHealthy"), s.status.condition("HooksHealthy")
		if was != nil && was.Message == is.Message { // by the process before
			s.failing.News(hooks)
			return
		}
	}
	ready := s.status.condition("Ready")
	fresh := slices.DeleteFunc(s.failing.News(hooks), func(h status.Hook) bool {
		return failed(ready) && strings.Contains(ready.Message, cut(h.LastError))
	})
	if text := status.Failing(fresh); text != "" {
		s.events = append(s.events, effect.Event{Type: "Warning", Reason: HookFailed, Message: "hook " + text})
	}
}

func failed(c *metav1.Condition) bool {
	return c != nil && (c.Reason == "Failed" || c.Reason == "Broken" || c.Reason == "NoModule")
}

// String is "web/web, revision 3, chart 1.2.0".
func (r *Release) String() string {
	out := fmt.Sprintf("%s/%s, revision %d", r.Namespace, r.Name, r.Revision)
	if r.ChartVersion != "" {
		out += ", chart " + r.ChartVersion
	}
	return out
}

// decode reads a status of the cluster; nil: there is none, or none that can be read.
func decode(text string) *Status {
	out := &Status{}
	if text == "" || json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	return out
}

// encode is a status as plain JSON data, and as a text.
func (s *Status) encode() (plain map[string]any, text string) {
	data, _ := json.Marshal(s)
	_ = json.Unmarshal(data, &plain)
	return plain, textOf(plain)
}

func cut(text string) string { return message.Fit(message.Line(strings.TrimSpace(text)), mostMessage) }
