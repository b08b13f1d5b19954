// Package reconcile decides how the children of one parent become those that its controller wants.
// Parts say which objects are wanted, an inventory says which there are; the answer is a list of
// actions. It keeps no state, asks no clock and does no I/O.
//
// The answer says what may be done now, and for what the rest waits. The caller carries out all that
// may be done, side by side, and asks again with the inventory of then, until nothing is left to be
// done. So there is no plan that a crash, a conflict, or somebody who deletes an object could spoil.
package reconcile

import (
	"fmt"

	"github.com/starling-operator/starling/runtime/effect"
)

// ID names a child: an object, or fields of an object that somebody else has made.
type ID struct {
	effect.Ref
	// Fields says that only fields of the object are the controller's; Subresource is where, "" for
	// the object itself.
	Fields      bool
	Subresource string
}

// String returns "Deployment shop/web", or "fields of Deployment shop/web (scale)".
func (id ID) String() string {
	text := id.Ref.String()
	if id.Fields {
		text = "fields of " + text
	}
	if id.Subresource != "" {
		text += " (" + id.Subresource + ")"
	}
	return text
}

// key is the same for all versions of the API.
func (id ID) key() ID {
	id.Ref = id.AnyVersion()
	return id
}

// Same says whether both name one child, in whatever version of the API.
func (id ID) Same(other ID) bool { return id.key() == other.key() }

// Update says how a child comes to a new state.
type Update string

const (
	// UpdateApply changes the object. It is also what an empty Update means.
	UpdateApply Update = "apply"
	// UpdateRecreate changes the object; where the API server refuses that, because a field cannot be
	// changed, it is deleted and made anew.
	UpdateRecreate Update = "recreate"
	// UpdateNever leaves an object alone that is there.
	UpdateNever Update = "never"
)

// Part is one child that is wanted.
type Part struct {
	// Name is unique among the parts of a parent.
	Name string
	ID   ID
	// Digest stands for all that is wanted of the child.
	Digest string
	// After are names of the parts that must be written and ready before this one comes to a new state.
	After  []string
	Update Update
	// Retain keeps the object when it is not wanted any more.
	Retain bool
	// Rolling is the name of the rollout that the part belongs to, or "". Rank is its place there:
	// small ones come first, equal ones as they are listed.
	Rolling string
	Rank    int
}

// Rollout has parts that are there come to a new state a few at a time.
type Rollout struct {
	// Name is that of [Part].Rolling.
	Name string
	// MaxUnavailable is how many may be on their way, or not ready, at a time; less than 1 counts as 1.
	MaxUnavailable int
	// Hold says why the child does not come to its new state that would be the next, or "": then those after it wait,
	// too. Nil: nothing holds one.
	Hold func(*Child) string `json:"-"`
}

// Wanted is all that a controller wants of one parent. A controller that wants nothing now, not even
// that anything is deleted, has no Wanted: the caller does not ask.
type Wanted struct {
	Parts []Part
	// Rollouts are those of the parts; one that is missing is as the zero [Rollout].
	Rollouts []Rollout
}

// Child is an object as it is.
type Child struct {
	ID
	UID string
	// Foreign says for people whose the object is when the parent has not made it: "kubectl"; else "".
	// Such a child is here because it has the name of a part. Adopt: it is taken over.
	Foreign string
	Adopt   bool
	// Unsigned: it has the marks of a child, without the signature. If it is Foreign, anybody may have written them.
	Unsigned bool
	// Digest is that of the part as it was written last. Of fields it is "" when the controller owns
	// none of them: the child says then that the object is there.
	Digest string
	// Layer and Retain are those of the part as it was written last. The child carries them, so that it
	// is deleted in the right order when nobody knows the part any more.
	Layer  int
	Retain bool
	// Changed says who has changed it since it was written, "" when nobody has. Held says why that is
	// not put right now. Reported: it is not put right before another state is wanted.
	Changed, Held string
	Reported      bool
	// Unsure: no field was taken from the controller, but a value differs. The API server may keep it in another
	// form: a write tells.
	Unsure bool
	// Contested says who changes it again and again, "" when nobody does, or has done so lately.
	Contested string
	Deleting  bool
	// Ready is false until the state that was written last is seen to be ready. Reason says why it is
	// not, or "".
	Ready  bool
	Reason string
}

// Failure is a write that has failed. One that succeeds ends all failures of its child.
type Failure struct {
	ID
	// Digest is that of the part, "" of a child that is not wanted. A failure of another digest does not
	// count: the part has changed since.
	Digest string
	// Reason is for people.
	Reason string
	// Tries is how many have failed one after the other.
	Tries int
	// Due says that the next try may be made.
	Due bool
}

// Write is one write about a child.
type Write struct {
	ID
	// Digest is that of the part, "" of a child that is not wanted.
	Digest string
	// Put says that somebody may have changed the child: it is put back as it was.
	Put bool
	// By is who had changed the child, which is put right; "" of any other write.
	By string
}

// Kind is a kind of objects.
type Kind struct{ APIVersion, Kind string }

// Inventory is all that is known of the children of one parent.
type Inventory struct {
	// Children has each ID once, in any order.
	Children []Child
	Failures []Failure
	// Unsynced are the kinds of which nobody knows yet which children there are. A kind that is not
	// served is not one of them: there are none.
	Unsynced []Kind
	// Unknown says what the parts were made without, "the watch of reads.images is not synced"; "" when
	// all was known. Nothing is deleted then.
	Unknown string
}

// Op says what an [Action] does.
type Op string

const (
	// OpCreate makes an object that is not there. One that somebody else makes meanwhile stays as it is.
	OpCreate Op = "create"
	// OpApply brings a child to the state of its part.
	OpApply Op = "apply"
	// OpDelete deletes the object, as no part wants it any more.
	OpDelete Op = "delete"
	// OpRelease gives fields back that no part wants any more. The object stays.
	OpRelease Op = "release"
	// OpWait does nothing: something else has to come first.
	OpWait Op = "wait"
	// OpHold does nothing until somebody changes something, or until the next try of what has failed.
	OpHold Op = "hold"
)

// Acts says whether anything is done.
func (o Op) Acts() bool { return o != OpWait && o != OpHold }

// Action is what is done about one child, or why nothing is. A child that is as its part wants it has
// none.
type Action struct {
	Op Op
	ID ID
	// Part is the name of the part, "" of a child that is not wanted.
	Part string
	// UID is that of the object that is there: no other one may be changed or deleted. It is "" of a
	// create, and where it is not known.
	UID string
	// Adopt: the object of somebody else is taken over.
	Adopt bool
	// Why is for people.
	Why string
}

// String returns "apply Deployment shop/web: kubectl-edit has changed it".
func (a Action) String() string { return fmt.Sprintf("%s %s: %s", a.Op, a.ID, a.Why) }

// how says how somebody has changed a child.
func (c *Child) how() string {
	if !c.Unsure {
		return c.Changed + " has changed it"
	}
	return "a value differs, which the API server may keep in another form: it is written once more"
}
