package values

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/message"
)

// KnownModule is a module that a config may speak about.
type KnownModule struct {
	// Name is the module's name: "ingress-nginx".
	Name string
	// Key is its key in configs: "ingressNginx".
	Key string
	// Elsewhere: another instance has it; what a config says of it is not looked at.
	Elsewhere bool
	// Gone: it is not in the tree any more; of a config its pause alone counts, the other keys are those of no module.
	Gone bool
}

// Config is what one config (the user's ConfigMap, or the tree's values.yaml) says. A section or switch with a
// [Problem] is missing here, others are not touched by it.
type Config struct {
	// Global are the global values; nil when there is no such key.
	Global map[string]any
	// Sections are the values of modules, by module name.
	Sections map[string]map[string]any
	// Enabled are the switches, by module name.
	Enabled map[string]bool
	// Policies say what becomes of releases, by module name; only of the user's ConfigMap.
	Policies map[string]Policy
}

// Section is what the config says for a module, or of the global values for "global".
func (c Config) Section(name string) map[string]any {
	if name == GlobalKey {
		return c.Global
	}
	return c.Sections[name]
}

// Policy says what becomes of the release of a module, as far as a user says so.
type Policy struct {
	// Drift is that of module(drift=…), or "".
	Drift string `json:"drift,omitempty"`
	// Paused leaves the release alone.
	Paused bool `json:"paused,omitempty"`
}

// Switch returns the switch of a module; nil when the config does not set it.
func (c Config) Switch(module string) *bool {
	if on, ok := c.Enabled[module]; ok {
		return &on
	}
	return nil
}

// ParseConfig reads the data of the user's ConfigMap: "global" and one key per module hold YAML maps,
// "<camelName>Enabled" and "<camelName>Paused" are "true" or "false", "<camelName>Drift" is as in module(drift=…), and
// "<camelName>Maintenance" pauses as in addon-operator. A mistake in one key is a Problem with its Key (and Module,
// when the key belongs to one) and leaves all others in force. Doubled YAML keys are refused; integers stay int64.
// Problems are sorted.
func ParseConfig(data map[string]string, known []KnownModule) (Config, []Problem) {
	return ParseConfigWith(data, known, func(_ string, parse func() error) error { return parse() })
}

// ParseConfigWith is [ParseConfig] for a caller that calls the parser of each section
// itself, with whatever goes before and after; its error is the section's problem.
func ParseConfigWith(data map[string]string, known []KnownModule, section func(key string, parse func() error) error) (Config, []Problem) {
	r := newConfigReader(known)
	r.policies = map[string]string{}
	for _, m := range known {
		for i, key := range PolicyKeys(m.Key) {
			switch {
			case m.Elsewhere:
				r.others[key] = true
			case m.Gone && i > 0:
				r.gone[key] = m.Name
			case !m.Gone:
				r.policies[key] = m.Name
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if r.others[key] {
			continue
		}
		plain, _ := bounded.Text([]byte(data[key])) // of a file that somebody has taken in
		text := string(plain)
		if module, ok := r.switches[key]; ok {
			if on, ok := r.boolean(module, key, text); ok {
				r.config.Enabled[module] = on
			}
			continue
		}
		if module := cmp.Or(r.policies[key], r.gone[key]); module != "" {
			r.policy(module, key, strings.TrimSpace(text))
			continue
		}
		if module, ok := r.section(key); ok {
			var m map[string]any
			err := section(key, func() (err error) { m, err = parseYAML([]byte(text)); return err })
			if errors.Is(err, errList) {
				err = fmt.Errorf("%w"+listHint, err)
			}
			if err != nil {
				r.problem(module, key, err.Error())
				continue
			}
			r.set(module, m)
		}
	}
	return r.config, r.done("config", "")
}

// ParseTree reads the values.yaml of the tree, which is one YAML map: the keys are those of [ParseConfig], but hold
// maps and booleans instead of text. file is for the problems.
func ParseTree(values map[string]any, file string, known []KnownModule) (Config, []Problem) {
	r := newConfigReader(known)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if r.others[key] {
			continue
		}
		if module, ok := r.switches[key]; ok {
			if on, ok := values[key].(bool); ok {
				r.config.Enabled[module] = on
			} else {
				r.problem(module, key, "must be true or false")
			}
			continue
		}
		if module, ok := r.section(key); ok {
			switch v := values[key].(type) {
			case map[string]any:
				r.set(module, v)
			case nil:
				r.set(module, map[string]any{})
			default:
				text := fmt.Sprintf("must be a map, not %s", kindOf(v))
				if _, is := v.([]any); is {
					text += listHint
				}
				r.problem(module, key, text)
			}
		}
	}
	return r.config, r.done("tree values.yaml", file)
}

type configReader struct {
	known    []KnownModule
	sections map[string]string // key → module
	switches map[string]string // key → module
	policies map[string]string // key → module; nil where there are none
	others   map[string]bool   // keys of modules that other instances have
	gone     map[string]string // key → module that is gone: nobody is told to write it
	config   Config
	problems []Problem
}

func newConfigReader(known []KnownModule) *configReader {
	r := &configReader{
		known:    slices.DeleteFunc(slices.Clone(known), func(m KnownModule) bool { return m.Gone }),
		sections: map[string]string{GlobalKey: GlobalKey},
		switches: map[string]string{},
		others:   map[string]bool{},
		gone:     map[string]string{},
		config:   Config{Sections: map[string]map[string]any{}, Enabled: map[string]bool{}},
	}
	for _, m := range r.known {
		if m.Elsewhere {
			r.others[m.Key], r.others[EnabledKey(m.Key)] = true, true
			continue
		}
		r.sections[m.Key] = m.Name
		r.switches[EnabledKey(m.Key)] = m.Name
	}
	return r
}

// boolean reads a key that is "true" or "false".
func (r *configReader) boolean(module, key, text string) (on, ok bool) {
	switch strings.TrimSpace(text) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	r.problem(module, key, `must be "true" or "false"`)
	return false, false
}

// policy reads a key about a release.
func (r *configReader) policy(module, key, text string) {
	p := r.config.Policies[module]
	switch {
	case strings.HasSuffix(key, pausedSuffix):
		on, _ := r.boolean(module, key, text)
		p.Paused = p.Paused || on
	case strings.HasSuffix(key, maintenanceSuffix): // the spellings of addon-operator; "" is none
		if on := text == maintenance || text == strings.ToLower(maintenance); on || text == "" {
			p.Paused = p.Paused || on
		} else {
			r.problem(module, key, `must be "`+maintenance+`", which pauses the release, or ""`)
		}
	case slices.Contains(drifts, text):
		p.Drift = text
	default:
		r.problem(module, key, `must be "`+strings.Join(drifts, `" or "`)+`"`)
	}
	if p == (Policy{}) {
		return
	}
	if r.config.Policies == nil {
		r.config.Policies = map[string]Policy{}
	}
	r.config.Policies[module] = p
}

// drifts are the values of module(drift=…).
var drifts = []string{builtins.DriftRepair, builtins.DriftReport, builtins.DriftIgnore}

// maintenance is the value with which addon-operator leaves a release alone.
const maintenance = "NoResourceReconciliation"

const noModule = "no module has this key"

// ConfigProblem is one thing that is wrong with the user's config.
type ConfigProblem struct {
	// Module is "" for a key that no module has.
	Module, Text string
	// Outcome is [Refused], [Unknown] or [Unused].
	Outcome string
}

// Outcomes of problems of the user's config, for people.
const (
	Refused = "the last good values stay in force"
	// Unknown is that of a key that no module has.
	Unknown = "it counts for nothing"
	// Unused is that of a part of the ConfigMap in the place of which a Module object counts.
	Unused = "the object counts as a whole"
)

// section returns the module that key belongs to; a key that belongs to none is a problem.
func (r *configReader) section(key string) (string, bool) {
	if module, ok := r.sections[key]; ok {
		return module, true
	}
	r.problem("", key, noModule+didYouMean(r.suggest(key)))
	return "", false
}

// suggest returns the key that was probably meant: by the module's name, which is a common slip, else by distance.
func (r *configReader) suggest(key string) string {
	for _, m := range r.known {
		switch key {
		case m.Name:
			return m.Key
		case EnabledKey(m.Name), m.Name + "-enabled":
			return EnabledKey(m.Key)
		}
	}
	return message.Nearest(key, slices.Concat(slices.Sorted(maps.Keys(r.sections)), slices.Sorted(maps.Keys(r.switches)), slices.Sorted(maps.Keys(r.policies))))
}

func (r *configReader) set(module string, m map[string]any) {
	if module == GlobalKey {
		r.config.Global = m
		return
	}
	r.config.Sections[module] = m
}

func (r *configReader) problem(module, key, message string) {
	r.problems = append(r.problems, Problem{Module: module, Key: key, Message: message})
}

func (r *configReader) done(layer, file string) []Problem {
	for i := range r.problems {
		r.problems[i].Layer, r.problems[i].File = layer, file
	}
	sortProblems(r.problems)
	return r.problems
}
