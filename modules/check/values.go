package check

import (
	"cmp"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
)

// allValues looks at values.yaml of the tree and of the modules, and at the schemas.
func (c *checker) allValues() {
	config, _ := values.ParseTree(c.tree.Values, c.tree.ValuesFile, c.gen.Known()) // what is wrong with it, the tree has said
	c.values["global"] = section{composer: values.NewComposer(values.Section{Name: "global", Key: values.GlobalKey, Static: static(nil, c.tree.ValuesFile, config.Global)})}
	for _, m := range c.modules {
		tree := config.Sections[m.Name]
		if m.Global {
			tree = config.Global
		}
		c.values[m.Name] = c.section(m, tree)
	}
}

func static(module []values.Layer, treeFile string, tree map[string]any) []values.Layer {
	if tree != nil {
		module = append(module, values.Layer{Name: values.LayerTree, File: treeFile, Data: tree})
	}
	return module
}

// section checks the values of one module, as they are before anybody has set any.
func (c *checker) section(m *generation.Module, set map[string]any) section {
	s := values.Section{Name: m.Name, Key: m.Key, Static: static(m.FileValues(), c.tree.ValuesFile, set)}
	out := section{composer: values.NewComposer(s)}
	for _, f := range []*tree.File{m.Tree.ConfigSchema, m.Tree.ValuesSchema} {
		var read any
		if f != nil && yaml.Unmarshal(f.Data, &read) == nil {
			c.boolKey("values", m, f.Path, f.Data, read)
		}
	}
	config, all, err := m.Schemas()
	var wrong *values.SchemaError
	switch {
	case errors.As(err, &wrong):
		for _, mistake := range wrong.Mistakes {
			c.add(Finding{Severity: Error, Check: "values", Module: m.Name, File: mistake.File, Line: mistake.Line, Message: mistake.Message})
		}
	case err != nil:
		c.addError("values", m.Name, err)
	}
	if err != nil {
		out.broken = true
		return out
	}
	said := map[string]bool{} // a schema that extends the other has its keywords, too
	for _, r := range []*values.SchemaError{config.Remarks(), all.Remarks()} {
		for i := 0; r != nil && i < len(r.Mistakes); i++ {
			if mistake := r.Mistakes[i]; !said[mistake.Message] {
				said[mistake.Message] = true
				c.add(Finding{Severity: Warning, Check: "values", Module: m.Name, File: mistake.File, Line: mistake.Line, Message: mistake.Message})
			}
		}
	}
	s.ConfigSchema, s.Schema = config, all
	out = section{composer: values.NewComposer(s), config: config, schema: all}
	for _, p := range config.Unknown(set) {
		if all != nil && len(all.Unknown(set)) == 0 {
			break // values of hooks and templates may stand there too
		}
		p.Module, p.Key = m.Name, m.Key
		c.addProblem(Warning, p, c.tree.ValuesFile)
	}
	own, _ := m.OwnValues()
	for _, p := range all.Unknown(own) {
		p.Module = m.Name
		if p.Path == m.Key {
			p.Message += ": values of the module stand here without its name"
		}
		c.addProblem(Warning, p, m.Tree.ValuesFile)
	}
	for _, p := range config.Unknown(own) {
		if all == nil && strings.Contains(p.Message, "did you mean") { // others may be values that no user sets
			p.Module = m.Name
			c.addProblem(Warning, p, m.Tree.ValuesFile)
		}
	}
	for _, p := range out.composer.CheckTree() {
		out.broken = true
		c.addProblem(Error, p, config.File())
	}
	for _, p := range out.composer.Unset() {
		p.Message += " of users: Starling waits until they set " + m.Key + "." + p.Path + " in the ConfigMap"
		c.addProblem(Note, p, config.File())
	}
	if !out.broken {
		c.fileValues(m, out.composer)
	}
	if data, err := fs.ReadFile(c.tree.Files, m.Tree.ValuesFile); err == nil {
		c.boolKey("values", m, m.Tree.ValuesFile, data, m.Tree.Values)
	}
	return out
}

// fileValues holds values.yaml to the schema for all values: a mistake there may be put right by a hook, as a rule
// it stops the release.
func (c *checker) fileValues(m *generation.Module, composer *values.Composer) {
	severity := Error
	if c.hooksSet(m) {
		severity = Warning
	}
	for _, p := range composer.CheckHelm() {
		if strings.HasSuffix(p.File, ".yaml") && p.Message != values.MessageRequired && !strings.Contains(p.Message, "unknown field") {
			c.addProblem(severity, p, p.File)
		}
	}
}

// addProblem takes a problem with values; file is where it is when it does not say.
func (c *checker) addProblem(s Severity, p values.Problem, file string) {
	where := strings.TrimPrefix(strings.Join([]string{p.Key, p.Path}, "."), ".")
	where = strings.TrimSuffix(where, ".")
	message := p.Message
	if where != "" {
		message = where + ": " + message
	}
	file = cmp.Or(p.File, file)
	if data, err := fs.ReadFile(c.tree.Files, file); err == nil && !strings.HasSuffix(file, ".star") {
		if line := values.LineOf(data, c.above(file, p.Module), p.Path); line > 0 {
			file += ":" + strconv.Itoa(line)
		}
	}
	c.addAt(s, "values", p.Module, file, message, "")
}

// quotedKey is the key that a message is about.
var quotedKey = regexp.MustCompile(`^"(?:[^"\\]|\\.)*"`)

// keyed adds the line to the path of a YAML file, when a message begins with one of its keys.
func (c *checker) keyed(file, message string) string {
	data, err := fs.ReadFile(c.tree.Files, file)
	key := quotedKey.FindString(message)
	if err != nil || key == "" || !strings.HasSuffix(file, ".yaml") {
		return file
	}
	if line := values.LineOf(data, "", "["+key+"]"); line > 0 {
		file += ":" + strconv.Itoa(line)
	}
	return file
}

// above is the key under which a values file has the values of a module: those of the tree
// have one, and that of a module may have one.
func (c *checker) above(file, module string) string {
	key := values.GlobalKey
	for _, m := range c.modules {
		switch {
		case m.Name != module || m.Global:
		case file == m.Tree.ValuesFile:
			_, key = m.OwnValues()
			return key
		default:
			key = m.Key
		}
	}
	if file != c.tree.ValuesFile {
		return ""
	}
	return key
}
