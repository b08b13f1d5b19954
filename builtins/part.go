package builtins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// maxPartName bounds part(name=).
const maxPartName = 200

// maxPart is the size of one object: what the API server takes, about.
const maxPart = 1 << 20

var partUpdates = []string{string(reconcile.UpdateApply), string(reconcile.UpdateRecreate), string(reconcile.UpdateNever)}

func callPart(c *call) (starlark.Value, error) {
	w, _, err := c.given(c.Arg("obj"), "obj")
	if err != nil {
		return nil, err
	}
	p := Part{Object: w.Object, Pos: c.Pos()}
	p.ID.Ref, p.After, p.Retain = w.Ref, c.Strings("after"), c.BoolOr("retain", false)
	if _, told := p.Object["status"]; told {
		return nil, fmt.Errorf("obj: the status of %s is written by its controller; leave it out", p.ID)
	}
	if err := c.child(p.ID, p.Object); err != nil {
		return nil, err
	}
	if p.Name, err = c.partName(p.ID); err != nil {
		return nil, err
	}
	update := c.StrOr("update", partUpdates[0])
	if !slices.Contains(partUpdates, update) {
		return nil, fmt.Errorf("update: got %q, want \"apply\", \"recreate\" or \"never\"", spec.Clip(update))
	}
	p.Update = reconcile.Update(update)
	if owner, given := c.Arg("owner").(starlark.Bool); given {
		p.Owner = (*bool)(&owner)
	}
	if err := c.partReady(&p); err != nil {
		return nil, fmt.Errorf("ready: %w", err)
	}
	if p.Fill, err = c.fill(p.Object); err != nil {
		return nil, fmt.Errorf("fill: %w", err)
	}
	if p.AtCreation, err = atCreation(c.Strings("at_creation"), p.Object); err != nil {
		return nil, fmt.Errorf("at_creation: %w", err)
	}
	return c.madePart("part", p)
}

// madePart is the value of a part that has all but its digest.
func (c *call) madePart(kind string, p Part) (starlark.Value, error) {
	size := object.PlainSize(p.Object)
	if size > maxPart {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d of an object", p.ID, size, maxPart)
	}
	// Neither the count nor what is in the list counts here: a function may make parts that it drops.
	if err := c.run.spend(0, "parts", size); err != nil {
		return nil, err
	}
	var err error
	if p.Digest, err = p.digest(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.ID, err)
	}
	return &declared[Part]{spec.Opaque(kind), p}, nil
}

// digest stands for the object that a part asks for. Children carry it: one that is made in another way has
// each of them written again.
func (p *Part) digest() (string, error) {
	var room [1024]byte
	text, err := object.AppendJSON(append(room[:0], '['), p.with(nil))
	if err != nil {
		return "", err
	}
	rest := []byte("[null,null]")
	if p.Fill != nil || p.Owner != nil {
		if rest, err = json.Marshal([]any{p.Fill, p.Owner}); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(append(append(text, ','), rest[1:]...))
	return hex.EncodeToString(sum[:16]), nil
}

// partName is name=, or what the child is called.
func (c *call) partName(id reconcile.ID) (string, error) {
	if c.Arg("name") == nil {
		return id.String(), nil
	}
	name := c.Str("name")
	if name == "" || len(name) > maxPartName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("name: %q is no name: 1 to %d characters, on one line", spec.Clip(name), maxPartName)
	}
	return name, nil
}

func (c *call) partReady(p *Part) error {
	switch v := c.ArgOr("ready", starlark.String(ReadyAuto)).(type) {
	case starlark.String:
		if p.Ready = string(v); p.Ready != ReadyAuto && p.Ready != ReadyExists {
			return fmt.Errorf("got %q, want \"auto\", \"exists\" or a function", spec.Clip(p.Ready))
		}
		return nil
	case starlark.Callable:
		p.ReadyFn = v
		return takesChild(v)
	default:
		return fmt.Errorf("got %s, want \"auto\", \"exists\" or a function", v.Type())
	}
}
