package userconfig

import (
	"fmt"
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/values"
)

// Object is what the Module object of one module asks for.
type Object struct {
	// Generation is its metadata.generation.
	Generation int64
	// Values is its spec.values as JSON, which stand in the place of the section of the ConfigMap; empty: it has none.
	Values string
	// Enabled is its spec.enabled, which stands in the place of the switch; nil: it has none.
	Enabled *bool
	// Paused is its spec.paused.
	Paused bool
	// Drift is its spec.drift, which stands in the place of that of the ConfigMap; empty: it has none.
	Drift string
}

// origin says what of a module is in force by its Module object, and not by the ConfigMap.
type origin uint8

const (
	valuesOfObject origin = 1 << iota
	switchOfObject
	// pausedByObject: its release is left alone.
	pausedByObject
	driftOfObject
)

// view is what the ConfigMap and the Module objects say together, by the keys of the ConfigMap.
type view struct {
	data map[string]string
	// held are the keys that somebody set who cannot be asked now: they stay as they are.
	held map[string]bool
	// from names the module whose object says what stands under a key.
	from map[string]string
}

// elsewhere are the modules that other instances have.
func elsewhere(sections []Section) (out []values.KnownModule) {
	for _, s := range sections {
		if s.Elsewhere {
			out = append(out, values.KnownModule{Key: s.Key, Elsewhere: true})
		}
	}
	return out
}

// compose puts together what is said. For each module spec.values and spec.enabled of its object
// count in the place of the section and the switch of the ConfigMap, each as a whole: two halves of
// one section in two places would be read by nobody.
func (c *Config) compose(sections []Section) (*view, map[string]origin) {
	v, origins := &view{data: map[string]string{}, held: map[string]bool{}, from: map[string]string{}}, map[string]origin{}
	if c.seen.State == Present {
		maps.Copy(v.data, c.seen.Data)
	}
	for _, s := range sections {
		if s.Elsewhere {
			continue
		}
		was, now := c.origins[s.Name], origin(0)
		object, there := c.seen.Objects[s.Name]
		asked := c.seen.ObjectsState == Present && there && !s.Global
		absent := c.seen.ObjectsState != "" && !asked // and may come back
		put := func(key, text string, said bool, part origin) {
			switch before := was&part != 0; {
			case s.Gone:
				now |= was & part
			case asked && said:
				v.data[key], v.from[key] = text, s.Name
				now |= part
			case absent && before:
				delete(v.data, key)
				v.held[key] = true
				now |= part
			case c.seen.State != Present:
				v.held[key] = !before // an object has said it, and does so no more
			}
		}
		put(s.Key, object.Values, object.Values != "", valuesOfObject)
		if !s.Global {
			put(values.EnabledKey(s.Key), fmt.Sprint(object.Enabled != nil && *object.Enabled), object.Enabled != nil, switchOfObject)
			keys := values.PolicyKeys(s.Key)
			put(keys[0], object.Drift, object.Drift != "", driftOfObject)
			if c.seen.State != Present {
				v.held[keys[1]] = true
			}
		}
		if asked && object.Paused {
			now |= pausedByObject
		} else if !asked && (s.Gone || absent) {
			now |= was & pausedByObject
		}
		if now != 0 {
			origins[s.Name] = now
		}
	}
	return v, origins
}

// unused says what of the ConfigMap does not count for a module, because its Module object says something too.
func (c *Config) unused(s Section) (problems []values.ConfigProblem) {
	if c.seen.State != Present {
		return nil
	}
	for _, part := range [][2]string{{s.Key, "spec.values"}, {values.EnabledKey(s.Key), "spec.enabled"}, {values.PolicyKeys(s.Key)[0], "spec.drift"}} {
		if _, too := c.seen.Data[part[0]]; too && c.view.from[part[0]] == s.Name {
			text := fmt.Sprintf("%s: %s: it does not count: Module %s has %s", c.o.Where(part[0], ""), part[0], s.Name, part[1])
			problems = append(problems, values.ConfigProblem{Module: s.Name, Text: text, Outcome: values.Unused})
		}
	}
	return problems
}

// says reports whether two views say the same under a key; before may be nil.
func (v *view) says(before *view, key string) bool {
	if before == nil || v.held[key] != before.held[key] || v.from[key] != before.from[key] {
		return false
	}
	x, there := before.data[key]
	y, too := v.data[key]
	return x == y && there == too
}

// place names what stands under a key.
func (v *view) place(key string) string {
	if module := v.from[key]; module != "" {
		return "spec.values of Module " + module
	}
	return "section " + key + " of the ConfigMap"
}

// said is a problem below a key with its place: of one in a values.yaml that is the file alone, which nobody has set.
func (c *Config) said(key string, p values.Problem) string {
	switch module := c.view.from[key]; {
	case slices.Contains([]string{values.LayerChart, values.LayerFolder, values.LayerTree}, p.Layer):
		return p.String()
	case module != "":
		return "Module " + module + ": " + p.String()
	}
	return c.o.Where(key, p.Path) + ": " + p.String()
}

// CheckObject says what is wrong with spec.values of the Module object of a section, given as JSON,
// in the words of [Config.Problems]; last is what is in force of the section, which always passes; evaluate is as
// in [Options]; ask answers a question of the section, for one that has some.
func CheckObject(s Section, spec string, last map[string]any,
	evaluate func(what string, parts func() []string, evaluate func() error) error,
	ask func(Question) (against string)) (texts []string) {
	each := func(_ string, f func() error) error {
		return evaluate("review of Module "+s.Name, func() []string { return []string{spec, s.Schemas} }, f)
	}
	parsed, problems := values.ParseConfigWith(map[string]string{s.Key: spec}, []values.KnownModule{{Name: s.Name, Key: s.Key}}, each)
	next := parsed.Sections[s.Name]
	if len(problems) == 0 && (last == nil || !same(next, last)) {
		problems = check(s, next, last, each)
		if len(problems) == 0 && s.Asks != "" {
			if against := ask(Question{Module: s.Name, Old: last, New: next}); against != "" {
				problems = append(problems, refused(s, against))
			}
		}
	}
	for _, p := range problems {
		texts = append(texts, fmt.Sprintf("Module %s: %s", s.Name, p))
	}
	return texts
}

// Paused says whether a Module object, or the ConfigMap, asks to leave the release of its module alone.
func (c *Config) Paused(module string) bool {
	return c.origins[module]&pausedByObject != 0 || c.accepted.Policies[module].Paused
}

// ValuesFrom names the object that the section of a module comes from, "" for the ConfigMap.
func (c *Config) ValuesFrom(module string) string { return c.objectOf(module, valuesOfObject) }

// SwitchFrom names the object that the switch of a module comes from, "" for the ConfigMap.
func (c *Config) SwitchFrom(module string) string { return c.objectOf(module, switchOfObject) }

func (c *Config) objectOf(module string, part origin) string {
	if c.origins[module]&part == 0 {
		return ""
	}
	return "Module " + module
}

// Spec is what is in force of a module by its Module object, as its spec has it; nil: nothing.
func (c *Config) Spec(module string) map[string]any {
	from, spec := c.origins[module], map[string]any{}
	if section := c.accepted.Sections[module]; from&valuesOfObject != 0 && section != nil {
		spec["values"] = section
	}
	if on := c.accepted.Switch(module); from&switchOfObject != 0 && on != nil {
		spec["enabled"] = *on
	}
	if from&pausedByObject != 0 {
		spec["paused"] = true
	}
	if from&driftOfObject != 0 {
		spec["drift"] = c.accepted.Policies[module].Drift
	}
	if len(spec) == 0 {
		return nil
	}
	return spec
}
