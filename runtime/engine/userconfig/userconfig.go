// Package userconfig knows what the user's ConfigMap and the Module objects say, and what of that is in force: each
// section stands on its own, and one that does not pass leaves the last good one in force. It does no I/O.
package userconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/object"
)

// State says what is known of the user's ConfigMap.
type State string

const (
	// Present: it was read.
	Present State = "ok"
	// Missing: there is none. The config that was accepted last stays in force.
	Missing State = "missing"
	// Unreadable: it cannot be read. The config that was accepted last stays in force.
	Unreadable State = "unreadable"
)

// Input is what the ConfigMap and the Module objects are now.
type Input struct {
	State State
	// Data is the ConfigMap's data; only with [Present].
	Data map[string]string
	// Reason says why it is unreadable; only with [Unreadable].
	Reason string
	// ObjectsState is that of the Module objects; empty: they are switched off, and say nothing.
	// While they are [Unreadable], all that they said last stays in force.
	ObjectsState State
	// Objects are the Module objects by the names of their modules; only with [Present]. For one
	// that is not there, all that it said last stays in force: it will be made again.
	Objects map[string]Object
}

// Options configures a [Config].
type Options struct {
	// Where names in messages the place of a key of the ConfigMap, and of a path below it: "ConfigMap ns/name".
	Where func(key, path string) string
	// Evaluate calls evaluate, which looks at something that the user has written: what
	// names it, and parts identify it. It may refuse to.
	Evaluate func(what string, parts func() []string, evaluate func() error) error
}

// Config is the state machine of the user's config.
type Config struct {
	o        Options
	seen     Input // zero: none yet
	view     *view // that of the last Apply; nil: none yet, or all are read anew
	accepted values.Config
	origins  map[string]origin // of what is accepted, by module
	problems map[string][]values.ConfigProblem
	// questions are those of sections that are not in force, by module.
	questions map[string]question
	// next is in force once it is kept, see [Config.Count]: a process that takes over goes by what is kept.
	next *Config
}

// New returns a config of which nothing is known.
func New(o Options) *Config {
	return &Config{o: o, problems: map[string][]values.ConfigProblem{}, questions: map[string]question{}}
}

// See takes over what the ConfigMap and the Module objects are now. Apply looks at it.
func (c *Config) See(in Input) {
	in.Data, in.Objects = maps.Clone(in.Data), maps.Clone(in.Objects) // the next one is compared with it
	d := c.draft()
	if d.seen.State != in.State {
		d.view = nil
	}
	d.seen = in
}

// Anew has the next Apply read all sections: they are others.
func (c *Config) Anew() { c.draft().view = nil }

// Known says whether the ConfigMap was looked at, and what it says is kept.
func (c *Config) Known() bool { return c.seen.State != "" }

// Seen is what is known of the ConfigMap and the Module objects; zero before anything is. Only read.
func (c *Config) Seen() Input { return c.seen }

// Accepted is what is in force. Only read.
func (c *Config) Accepted() values.Config { return c.accepted }

// Problems are what is wrong with the config, by module; of no module for "". Only read.
func (c *Config) Problems() map[string][]values.ConfigProblem { return c.problems }

// Held says whether something is in force that a user once set in the ConfigMap.
func (c *Config) Held() bool {
	a := c.accepted
	for name := range a.Sections {
		if c.origins[name]&valuesOfObject == 0 {
			return true
		}
	}
	for name := range a.Enabled {
		if c.origins[name]&switchOfObject == 0 {
			return true
		}
	}
	for name, p := range a.Policies {
		if p.Paused || c.origins[name]&driftOfObject == 0 {
			return true
		}
	}
	return len(a.Global) > 0
}

// Section is the part of the config that belongs to one module, or to the global values.
type Section struct {
	// Name is the module's name, or "global"; Key is its key in the ConfigMap.
	Name, Key string
	// Global marks the global values.
	Global bool
	// Schemas identifies the schemas that the section is checked against.
	Schemas string
	// Gone says that the module is not in the tree, and may come back: what is in force of its section and its switch
	// stays, until [Config.Drop]. Its pause counts.
	Gone bool
	// Elsewhere says that another instance has the module: what the config says of it is not looked at.
	Elsewhere bool
	// Check checks what the section would be; last is what it is now.
	Check func(next, last map[string]any) []values.Problem
	// Asks identifies the code that has to be asked about the section, see [Question]; empty: there is none.
	Asks string
}

// Apply finds what the ConfigMap and the Module objects say, as far as it passes. Sections are those of all
// modules, that of the global values first; where they are not those of the last Apply, Anew goes before. It
// returns whether [Config.Keep] differs, and questions that have to be asked. Count makes it count.
func (c *Config) Apply(sections []Section) (keeps bool, questions []Question) {
	d := c.draft()
	if !d.Known() || d.seen.State != Present && d.seen.ObjectsState == "" && len(d.origins) == 0 {
		return false, nil
	}
	last := d.view
	var origins map[string]origin
	d.view, origins = d.compose(sections)
	next, problems, questions := d.read(sections, last)
	keeps = len(moved(next, d.accepted, origins, d.origins)) > 0
	if d.problems, d.origins = problems, origins; keeps {
		d.accepted = next
	}
	return keeps, questions
}

// read reads what there is. A section that does not pass is as it is now. So is one that has passed
// and says what it said before, unless that is nil: to read them all costs much with many modules.
func (c *Config) read(sections []Section, before *view) (values.Config, map[string][]values.ConfigProblem, []Question) {
	known := elsewhere(sections)
	owner, schemas, stays := map[string]string{}, map[string]string{}, map[string]bool{} // by key
	for _, m := range known {
		owner[m.Key] = "another instance"
	}
	for _, s := range sections {
		if s.Elsewhere || s.Gone && owner[s.Key] != "" {
			continue // another module has the key of one that is gone
		}
		if owner[s.Key] = s.Name; s.Gone {
			known = append(known, values.KnownModule{Name: s.Name, Key: s.Key, Gone: true})
			continue
		}
		if _, shared := stays[s.Key]; !shared {
			stays[s.Key] = c.view.says(before, s.Key)
		}
		stays[s.Key] = stays[s.Key] && len(c.problems[s.Name]) == 0 && c.questions[s.Name].id == ""
		schemas[s.Key] = s.Schemas
		if !s.Global {
			known = append(known, values.KnownModule{Name: s.Name, Key: s.Key})
		}
	}
	evaluate := func(key string, evaluate func() error) error {
		text, there := c.view.data[key]
		switch {
		case stays[key]:
			return nil
		case !there:
			return evaluate() // nothing that a user has written
		}
		return c.o.Evaluate(c.view.place(key), func() []string { return []string{text, schemas[key]} }, evaluate)
	}
	parsed, mistakes := values.ParseConfigWith(c.view.data, known, evaluate)
	problems, bad := map[string][]values.ConfigProblem{}, map[string]bool{}
	report := func(module, key string, p values.Problem) {
		outcome := values.Refused
		if module == "" {
			outcome = values.Unknown
		}
		problems[module] = append(problems[module], values.ConfigProblem{Module: module, Text: c.said(key, p), Outcome: outcome})
	}
	for _, p := range mistakes {
		report(p.Module, p.Key, p)
		bad[p.Key] = true
	}
	var questions []Question
	next := values.Config{Sections: map[string]map[string]any{}, Enabled: maps.Clone(parsed.Enabled), Policies: maps.Clone(parsed.Policies)}
	for _, s := range sections {
		if s.Elsewhere {
			continue
		}
		key := values.EnabledKey(s.Key)
		if on, set := c.accepted.Enabled[s.Name]; set && (s.Gone || bad[key] || c.view.held[key]) {
			next.Enabled[s.Name] = on // a switch that cannot be read stays as it was
		}
		policy, was := next.Policies[s.Name], c.accepted.Policies[s.Name]
		keys := values.PolicyKeys(s.Key) // of the release: as the switch
		if s.Gone || bad[keys[0]] || c.view.held[keys[0]] {
			policy.Drift = was.Drift
		}
		if s.Gone && owner[s.Key] != s.Name || bad[keys[1]] || bad[keys[2]] || c.view.held[keys[1]] {
			policy.Paused = policy.Paused || was.Paused
		}
		setPolicy(&next, s.Name, policy)
		section, last := parsed.Sections[s.Name], c.accepted.Sections[s.Name]
		if s.Global {
			section, last = parsed.Global, c.accepted.Global
		}
		if s.Gone || stays[s.Key] || bad[s.Key] || c.view.held[s.Key] {
			section = last
		} else if found := check(s, section, last, evaluate); len(found) > 0 {
			section = last
			for _, p := range found {
				report(s.Name, s.Key, p)
			}
		} else {
			against, asks := c.consult(s, section, last)
			if questions = append(questions, asks...); against != "" {
				report(s.Name, s.Key, refused(s, against))
			}
			if against != "" || c.Asking(s.Name) {
				section = last
			}
			if c.Asking(s.Name) {
				c.stay(&next, s.Name)
			}
		}
		if same(section, last) {
			section = last // see Moves
		}
		switch {
		case s.Global:
			next.Global = section
		case section != nil:
			next.Sections[s.Name] = section
		}
		problems[s.Name] = append(problems[s.Name], c.unused(s)...)
		if len(problems[s.Name]) == 0 {
			delete(problems, s.Name)
		}
	}
	return next, problems, questions
}

// stay has the switch and the policy of a module be those that are in force.
func (c *Config) stay(next *values.Config, name string) {
	delete(next.Enabled, name)
	if on, set := c.accepted.Enabled[name]; set {
		next.Enabled[name] = on
	}
	setPolicy(next, name, c.accepted.Policies[name])
}

// Drop takes away what is in force for a module that is gone for good. It says whether there was something.
func (c *Config) Drop(name string) (was bool) {
	if c.next != nil {
		was = c.next.Drop(name)
	}
	_, section := c.accepted.Sections[name]
	_, enabled := c.accepted.Enabled[name]
	_, policy := c.accepted.Policies[name]
	_, object := c.origins[name]
	a := &c.accepted
	a.Sections, a.Enabled, a.Policies = maps.Clone(a.Sections), maps.Clone(a.Enabled), maps.Clone(a.Policies)
	delete(a.Sections, name)
	delete(a.Enabled, name)
	delete(a.Policies, name)
	c.origins = maps.Clone(c.origins)
	delete(c.origins, name)
	delete(c.questions, name)
	return was || section || enabled || policy || object
}

func setPolicy(c *values.Config, name string, p values.Policy) {
	if p == (values.Policy{}) {
		delete(c.Policies, name)
		return
	}
	if c.Policies == nil {
		c.Policies = map[string]values.Policy{}
	}
	c.Policies[name] = p
}

// check says what is wrong with a section.
func check(s Section, next, last map[string]any, evaluate func(string, func() error) error) (problems []values.Problem) {
	if next == nil && last == nil { // a schema that requires something waits for it before Helm
		return nil
	}
	if size := sizeOf(next); size > MaxSection {
		return []values.Problem{{Key: s.Key, Message: fmt.Sprintf("the section has %d KiB as JSON, more than the %d KiB that can be kept: make it smaller", size>>10, MaxSection>>10)}}
	}
	err := evaluate(s.Key, func() error {
		if problems = s.Check(next, last); len(problems) > 0 {
			return problems[0]
		}
		return nil
	})
	if err != nil && len(problems) == 0 {
		problems = []values.Problem{{Key: s.Key, Message: err.Error()}}
	}
	return problems
}

// added are the problems that were not there before, by module.
func added(now, before map[string][]values.ConfigProblem) (out []values.ConfigProblem) {
	if reflect.DeepEqual(now, before) {
		return nil
	}
	for _, module := range slices.Sorted(maps.Keys(now)) {
		for _, p := range now[module] {
			if !slices.Contains(before[module], p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// moved names the modules of which two configs do not say the same, sorted.
func moved(a, b values.Config, from, was map[string]origin) (names []string) {
	if !same(a.Global, b.Global) {
		names = append(names, values.GlobalKey)
	}
	for _, c := range []values.Config{a, b} {
		names = slices.AppendSeq(slices.AppendSeq(slices.AppendSeq(names, maps.Keys(c.Sections)), maps.Keys(c.Enabled)), maps.Keys(c.Policies))
	}
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(from)), maps.Keys(was))
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return name != values.GlobalKey && same(a.Sections[name], b.Sections[name]) && !alone(name, a, b, from, was)
	})
}

// alone says whether two configs do not say the same of a module beside its section.
func alone(name string, a, b values.Config, from, was map[string]origin) bool {
	return !reflect.DeepEqual(a.Switch(name), b.Switch(name)) || a.Policies[name] != b.Policies[name] || from[name] != was[name]
}

// same compares what would be kept of two sections.
func same(a, b map[string]any) bool {
	if object.Identical(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
