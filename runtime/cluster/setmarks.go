package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// Marks of the members of sets. All of them come with the apply that makes a member, so there is
// no moment in which it is not known.

const (
	// SetLabel marks the members of a set of objects that a hook applies. Its value
	// is unique for instance, hook and name of the set.
	SetLabel = "starling.dev/set"
	// hookLabel marks the members of all sets of one hook of one instance.
	hookLabel = "starling.dev/set-hook"
	// setAnnotation says "NAME of INSTANCE as NAMESPACE/NAME": which set, and which object.
	// A copy under another name, even with its field managers, names the object that it was
	// copied from.
	setAnnotation = "starling.dev/set-of"
	// keepAnnotation marks members that stay when their hook goes.
	keepAnnotation = "starling.dev/set-keep"
)

// setMarks are those of one set.
type setMarks struct {
	manager, name, instance string
	id, hook                string // the values of the labels
	keep                    bool
	seal                    *effect.Seal
}

func (w *Writer) marksOf(manager, name string, keep bool) setMarks {
	return setMarks{
		manager: manager, name: name, instance: w.o.Instance,
		id: digestOf(w.o.Instance, manager, name), hook: w.hookID(manager), keep: keep, seal: w.o.Client.seal,
	}
}

func (w *Writer) hookID(manager string) string { return digestOf(w.o.Instance, manager) }

// digestOf is the value of a label: 32 characters.
func digestOf(texts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", texts))
	return hex.EncodeToString(sum[:16])
}

// of is the annotation of an object of the set.
func (k setMarks) of(obj map[string]any) string { return k.name + ofInstance(k.instance, obj) }

func ofInstance(instance string, obj map[string]any) string {
	ref := effect.RefOf(obj)
	return " of " + instance + " as " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

// nameOf is the name of the set that a hook has made obj for.
func (w *Writer) nameOf(manager string, obj map[string]any) (name string, is bool) {
	name, ours := strings.CutSuffix(textOf(obj, "annotations", setAnnotation), ofInstance(w.o.Instance, obj))
	return name, ours && w.marksOf(manager, name, false).made(obj)
}

// on returns a copy of obj with the marks.
func (k setMarks) on(obj map[string]any) map[string]any {
	obj, metadata := effect.WithMetadata(obj)
	labels, annotations := effect.Cloned(metadata, "labels"), effect.Cloned(metadata, "annotations")
	labels[SetLabel], labels[hookLabel] = k.id, k.hook
	annotations[setAnnotation] = k.of(obj)
	delete(annotations, keepAnnotation) // of an object that was copied
	delete(annotations, effect.SetSignature)
	if k.keep {
		annotations[keepAnnotation] = "true"
	}
	return obj
}

// sign puts the signature of a member into its annotations. That of what is there stays, if it is one.
func (k setMarks) sign(ref effect.Ref) func(annotations, live map[string]any) {
	if k.seal == nil {
		return nil
	}
	return func(annotations, live map[string]any) {
		if annotations[effect.SetSignature] = textOf(live, "annotations", effect.SetSignature); live == nil || !k.signed(ref, live) {
			annotations[effect.SetSignature] = k.seal.Sign(ref, uidOf(live), "set", k.id) + " " + k.seal.SignName(ref, "set", k.id)
		}
	}
}

// signed says whether the signature of live is that of a member.
func (k setMarks) signed(ref effect.Ref, live map[string]any) bool {
	signature, _, _ := strings.Cut(textOf(live, "annotations", effect.SetSignature), " ")
	return k.seal.Signs(signature, ref, live, "set", k.id)
}

// made says whether the hook has made live for this set: a copy that somebody else makes of a
// member has its marks, but the hook does not own them, and marks that somebody makes up are not signed.
// One mark that is left beside the signature is enough, unless another set claims the object.
func (k setMarks) made(live map[string]any) bool {
	a, signed := apply.FieldsOf(live, k.manager, ""), k.signed(effect.RefOf(live), live)
	if apply.PlainOf(live, k.manager) { // nobody knows who has written the marks
		return signed && textOf(live, "labels", SetLabel) == k.id && textOf(live, "annotations", setAnnotation) == k.of(live)
	}
	if a == nil || !signed && !k.seal.TakesUnsigned() {
		return false
	}
	switch textOf(live, "labels", SetLabel) {
	case k.id:
		return a.Owns("labels", SetLabel)
	case "":
		return textOf(live, "annotations", setAnnotation) == k.of(live) && a.Owns("annotations", setAnnotation)
	}
	return false
}

// claims says whether an apply may take live for a member: it is the very one that is known, it
// carries the label, or it has been made for this set. The label needs the signature of the name, which a backup
// brings back, too.
func (k setMarks) claims(ref effect.Ref, live map[string]any, uid string) bool {
	_, name, _ := strings.Cut(textOf(live, "annotations", effect.SetSignature), " ")
	labelled := textOf(live, "labels", SetLabel) == k.id && (k.seal.SignsName(name, ref, "set", k.id) || k.seal.TakesUnsigned())
	return uid != "" && uidOf(live) == uid || labelled || k.made(live)
}

func textOf(obj map[string]any, in, key string) string {
	return effect.At[string](obj, "metadata", in, key)
}

func uidOf(obj map[string]any) string { return effect.At[string](obj, "metadata", "uid") }

func versionOf(obj map[string]any) string {
	return effect.At[string](obj, "metadata", "resourceVersion")
}

// slim is what a write of a member asks of an object that carries the label, without the
// object's content.
func slim(obj map[string]any) map[string]any {
	out, metadata := effect.WithMetadata(map[string]any{"metadata": obj["metadata"]})
	annotations, _ := metadata["annotations"].(map[string]any)
	metadata["annotations"] = marksOf(annotations)
	delete(metadata, "managedFields")
	return out
}
