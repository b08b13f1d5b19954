package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Applied is the annotation of an object whose API server has no server-side apply. It holds a digest of what was
// written: without it, nothing would tell that a field is wanted no more.
const Applied = "starling.dev/applied"

// Noted is an object as it is written where its API server does not apply it. Signatures are no part of the digest:
// they differ from one write to another.
func Noted(want map[string]any) map[string]any {
	out, metadata := effect.WithMetadata(Desired(&unstructured.Unstructured{Object: want}).Object)
	annotations := effect.Cloned(metadata, "annotations")
	for _, key := range slices.Concat(effect.Signatures, []string{Applied}) {
		delete(annotations, key)
	}
	text, _ := json.Marshal(out)
	sum := sha256.Sum256(text)
	maps.Copy(annotations, effect.At[map[string]any](want, "metadata", "annotations"))
	annotations[Applied] = hex.EncodeToString(sum[:16])
	return out
}

// Plain says whether live was written without server-side apply: nothing tells which fields are the manager's.
func Plain(live map[string]any, manager string) bool {
	return effect.At[string](live, "metadata", "annotations", Applied) != "" && FieldsOf(live, manager, "") == nil
}

// PlainOf says whether manager may have written live so: where managers are noted, it is one of them.
func PlainOf(live map[string]any, manager string) bool {
	noted, is := false, false
	for e := range Entries(live) {
		noted, is = true, is || e["manager"] == manager
	}
	return Plain(live, manager) && (is || !noted)
}

// AsNoted says whether live is plain, and as want was written. The API server may have filled in more.
func AsNoted(want, live map[string]any, manager string) bool {
	return Plain(live, manager) && equal(Noted(want), live, true)
}

// replace writes an object as a whole, and leaves what others have written of its metadata, and its status.
func (w Writer) replace(ctx context.Context, to dynamic.ResourceInterface, whole, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := Replacement(whole, live)
	return w.patch(ctx, to, live, types.MergePatchType, body, err)
}

// Replacement is the merge patch that makes live the whole object, in the state in which it is; nil: it is that. Labels
// and annotations of others stay, and so does the status.
func Replacement(whole, live *unstructured.Unstructured) ([]byte, error) {
	next := Desired(whole)
	next.Object["metadata"] = Union(next.Object["metadata"], live.Object["metadata"].(map[string]any))
	if next.Object["status"] = live.Object["status"]; next.Object["status"] == nil {
		delete(next.Object, "status")
	}
	if object.Same(next.Object, live.Object) {
		return nil, nil
	}
	unversioned := live.DeepCopy()
	unversioned.SetResourceVersion("") // so the patch holds for that of live
	before, err := unversioned.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := next.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(before, after)
}
