package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// An object of which a parent has fields says so in an annotation: so they are found, and given back, when
// nobody knows any more that they were wanted.

// FieldsPrefix begins the annotations of [Holder.Mark].
const FieldsPrefix = "fields.starling.dev/"

// Claimed stands for [Part].Digest in a mark that is written before the fields of a subresource are.
const Claimed = "claimed"

// Holder is a parent that has fields of an object, or of a subresource of it. The parent is known by its
// name: one that somebody makes anew has the fields of the one before it.
type Holder struct {
	// Key is that of the parent; Controller stands for its controller, see [ControllerLabel].
	Key, Controller string
	// Subresource is "" for the object itself.
	Subresource string
}

// Mark is the annotation that says that the holder has fields; digest is that of the part.
func (h Holder) Mark(digest string) (name, value string) {
	sum := sha256.Sum256([]byte(h.Controller + " " + h.Subresource + " " + h.Key))
	return FieldsPrefix + hex.EncodeToString(sum[:8]), strings.Join([]string{h.Controller, digest, "." + h.Subresource, h.Key}, " ")
}

// Manager is the field manager of the holder; hook is the id of its controller.
func (h Holder) Manager(hook string) string {
	place := h.Controller[:min(8, len(h.Controller))]
	if h.Subresource != "" {
		place += " " + h.Subresource
	}
	return effect.Manager(fmt.Sprintf("%s of %s (%s)", hook, h.Key, place))
}

// Held is a mark as it is found.
type Held struct {
	Holder
	// Name is that of the annotation.
	Name, Digest string
}

// HeldIn returns the marks of an object, by name. Anybody may have written them.
func HeldIn(obj map[string]any) (out []Held) {
	annotations := effect.At[map[string]any](obj, "metadata", "annotations")
	for name, v := range annotations {
		if !strings.HasPrefix(name, FieldsPrefix) { // those of each child are looked through at each run
			continue
		}
		text, _ := v.(string)
		words := strings.Split(text, " ")
		if len(words) != 4 {
			continue
		}
		h := Held{Holder{Key: words[3], Controller: words[0], Subresource: strings.TrimPrefix(words[2], ".")}, name, words[1]}
		if own, _ := h.Mark(""); own == name {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Held) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// FieldsOf returns an object as it is kept for those that want fields of it: as a whole if it has a mark,
// else what names it.
func FieldsOf(obj map[string]any) map[string]any {
	if len(HeldIn(obj)) > 0 {
		return obj
	}
	short := effect.Only(effect.At[map[string]any](obj, "metadata"), "name", "namespace", "uid", "deletionTimestamp")
	return map[string]any{"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": short}
}

// FieldsChild is the object of which fields are wanted as a child. The digest is "" when the holder has none.
func FieldsChild(obj map[string]any, subresource, digest string) Child {
	c := ChildOf(obj)
	return Child{
		ID: ID{Ref: c.Ref, Fields: true, Subresource: subresource}, UID: c.UID, Digest: digest, Deleting: c.Deleting, Ready: true,
	}
}
