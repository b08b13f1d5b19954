package userconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/starling-operator/starling/modules/values"
)

// A module may have a function that checks its section. Nobody is called here: a section that
// differs from what is in force becomes a [Question], and until that is answered all of the module stays
// as it is, its switch too, which may only be meant for the section beside it.

// Question asks a module about its section, once it has passed the schemas; answered by [Config.Answer].
type Question struct {
	Module string
	// ID tells it from earlier ones of the module.
	ID string
	// Old is the section that is in force, New the one that would be; nil: none. Only read.
	Old, New map[string]any
}

// question is about a section that is not in force, or not yet.
type question struct {
	id     string
	answer *string // why the section must not be in force, "": it may; nil: nobody has answered
}

// consult says what a module has said against its section, or which question is new.
func (c *Config) consult(s Section, next, last map[string]any) (against string, asks []Question) {
	if s.Asks == "" || same(next, last) {
		delete(c.questions, s.Name)
		return "", nil
	}
	id, asked := idOf(s.Asks, last, next), c.questions[s.Name]
	switch {
	case asked.id != id:
		c.questions[s.Name] = question{id: id}
		return "", []Question{{Module: s.Name, ID: id, Old: last, New: next}}
	case asked.answer == nil:
		return "", nil
	case *asked.answer == "":
		delete(c.questions, s.Name)
		return "", nil
	}
	return *asked.answer, nil
}

// refused is what people read of an answer.
func refused(s Section, why string) values.Problem {
	return values.Problem{Layer: values.LayerConfig, Key: s.Key, Message: why}
}

func idOf(code string, sections ...map[string]any) string {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(code)
	for _, section := range sections {
		_ = json.NewEncoder(sum).Encode(section) // it came from YAML: it can be written
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Asking says whether a module has not answered the question about its section yet.
func (c *Config) Asking(module string) bool {
	q, asked := c.newest().questions[module]
	return asked && q.answer == nil
}

// Answer takes in why a section must not be in force, or "". It says whether [Config.Apply] is due: an answer
// to an earlier question counts for nothing.
func (c *Config) Answer(module, id, why string) bool {
	if !c.Asking(module) || c.newest().questions[module].id != id {
		return false
	}
	c.draft().questions[module] = question{id, &why}
	return true
}

// Again has a module asked once more about a section that it has refused. It says whether [Config.Apply] is due.
func (c *Config) Again(module string) bool {
	if _, asked := c.newest().questions[module]; !asked || c.Asking(module) {
		return false
	}
	delete(c.draft().questions, module)
	return true
}
