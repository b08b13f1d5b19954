package builtins

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/starling-operator/starling/builtins/spec"
)

// Requirement is one text of module(requires=): "db" is on and ready; of "nats|kafka" one is; "!legacy"
// is off, and gone.
type Requirement string

// Off says that the module must be off.
func (r Requirement) Off() bool { return strings.HasPrefix(string(r), "!") }

// Names are the modules that it is about, one or more.
func (r Requirement) Names() iter.Seq[string] {
	return strings.SplitSeq(strings.TrimPrefix(string(r), "!"), "|")
}

// Required are the names of all modules that some requirements are about.
func Required(requirements []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range requirements {
			for name := range Requirement(r).Names() {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// Ways to treat the release of a module that is off because of requires=.
const (
	lostKeeps      = "keep"
	lostUninstalls = "uninstall"
)

// requirements checks requires= of module(), and reads on_requirement_lost=.
func (c *call) requirements() (uninstalls bool, err error) {
	for _, text := range c.Strings("requires") {
		r := Requirement(text)
		for name := range r.Names() {
			if err := spec.DNSLabel(strings.TrimSpace(name), 63); err != nil || name != strings.TrimSpace(name) {
				return false, fmt.Errorf(`requires: %q: write "db", "nats|kafka" or "!legacy", without spaces`, spec.Clip(text))
			}
		}
		if r.Off() && strings.Contains(text, "|") {
			return false, fmt.Errorf(`requires: %q: ! stands before one name; write one text for each module that must be off`, spec.Clip(text))
		}
	}
	lost, err := c.word("on_requirement_lost", lostKeeps, lostUninstalls)
	if err == nil && c.Arg("on_requirement_lost") != nil && len(c.Strings("requires")) == 0 {
		err = errors.New("on_requirement_lost: it goes with requires, which is missing")
	}
	return lost == lostUninstalls, err
}
