// Package verdicts says what shall be done about a module: whether its hooks run, whether its
// release may be installed, and whether it is taken away. It is pure: [Decide] goes by [Facts]
// alone.
package verdicts

import (
	"strings"

	"github.com/starling-operator/starling/modules/values"
)

// Facts are what a module's fate depends on.
type Facts struct {
	Gone Gone // how far a module that is not in the tree is on its way out
	// NewBroken is, of such a module, another one of which nothing is there, and which is broken: it
	// may be the new name of this one.
	NewBroken string

	Key     string // `<Key>Enabled` is its switch
	Broken  string // why the module cannot be used, or ""
	Started bool   // its hooks run already
	There   There
	Paused  bool
	Switch  values.Switch
	Enabled Answer
	Before  Before
	// Renamed: a release of it has another name or namespace, and is uninstalled before the tree's own one is there.
	Renamed bool
	// LostUninstalls: a requirement that does not hold is an explicit no.
	LostUninstalls bool
	// Unlisted: it reads which modules are on, and that is not known yet.
	Unlisted bool

	ConfigKnown  bool   // the user's ConfigMap was looked at
	ConfigUnread string // why it cannot be read, while none was ever accepted, or ""
	Global       Global
}

// Gone says whether a module is in the tree, and what stands in the way of one that is not.
type Gone int

// Of these the first that holds counts.
const (
	InTree    Gone = iota
	Leaving        // its uninstall has begun, with its hooks
	Elsewhere      // it is in the tree, and another instance has it
	Hollow         // its folder is there, and empty
	Moment         // it may come back in a moment
	Busy           // others are on their way, or something of it is under way
	Nothing        // nothing does
)

// There says what of a module is in the cluster.
type There int

// Sets of its hooks may be there without a release, or hooks that must hear of its end.
const (
	None There = iota
	Rest
	Release
)

// Before is what comes before this one, and in which way; the first of the strongest. Module is a name, or
// the text of a requirement.
type Before struct {
	Module string
	Is     Need
}

// Need says what of another module is missing.
type Need int

// A requirement is off, or on where it must be off; not ready and at rest, or not ready yet; it must
// be off, and is not gone yet; a module that merely comes first has not settled.
const (
	Free Need = iota
	RequiredOff
	RequiredOn
	RequiredStuck
	RequiredComes
	RequiredGoes
	Earlier
)

// Lost says why a requirement does not hold, or "".
func (b Before) Lost() string {
	switch {
	case b.Is == RequiredOff && strings.Contains(b.Module, "|"):
		return "requires one of " + strings.ReplaceAll(b.Module, "|", ", ") + ", which are all off"
	case b.Is == RequiredOff:
		return "requires " + b.Module + ", which is off"
	case b.Is == RequiredOn:
		return "requires " + b.Module + " to be off, and it is on"
	}
	return ""
}

// Global is what all modules go by: how far the global hooks are, and whether the tree counts.
type Global struct {
	Pending string // of them, that modules wait for, or ""
	Failing string // a global hook that never succeeded, or ""
	// Stays is until when nothing goes that the tree lacks or switches off, as another process may have a newer tree,
	// and why; "": it goes.
	Stays string
}

// Answer is what def enabled() says.
type Answer struct {
	Says   Says
	Reason string
}

// Says is the kind of an answer.
type Says int

const (
	// On: it says so, or the module has no def enabled().
	On Says = iota
	// Unasked: it has not answered yet.
	Unasked
	// Failed: it has failed, and no earlier answer counts.
	Failed
	// Waiting and Disabled are the other answers.
	Waiting
	Disabled
	// WasDisabled is a Disabled for values that have moved since.
	WasDisabled
)
