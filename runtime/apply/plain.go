package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Applied is the annotation of an object whose API server has no server-side apply. It holds a digest of what was
// written: without it, nothing would tell that a field is wanted no more.
const Applied = "starling.dev/applied"

// Noted is an object as it is written where its API server does not apply it. Signatures are no part of the digest:
// they differ from one write to another.
func Noted(want map[string]any) map[string]any {
	given, metadata := effect.WithMetadata(want)
	annotations := effect.Cloned(metadata, "annotations")
	for _, key := range slices.Concat(effect.Signatures, []string{Applied}) {
		delete(annotations, key)
	}
	text, _ := json.Marshal(given)
	sum := sha256.Sum256(text)
	out, metadata := effect.WithMetadata(want)
	effect.Cloned(metadata, "annotations")[Applied] = hex.EncodeToString(sum[:16])
	return out
}

// Plain says whether manager has written live without server-side apply: nothing tells which fields are its own.
func Plain(live map[string]any, manager string) bool {
	if effect.At[string](live, "metadata", "annotations", Applied) == "" {
		return false
	}
	others, own := false, false
	for e := range Entries(live) {
		if e["manager"] == manager && e["operation"] == string(metav1.ManagedFieldsOperationApply) {
			return false
		}
		own, others = own || e["manager"] == manager, others || e["manager"] != manager
	}
	return own || !others
}

// AsNoted says whether live is plain, and as want was written.
func AsNoted(want, live map[string]any, manager string) bool {
	return Plain(live, manager) && within(Noted(want), live)
}

// within says whether live has the values of want. The API server may have filled in more.
func within(want, live any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, _ := live.(map[string]any)
		for key, v := range want {
			if v != nil && !within(v, live[key]) {
				return false
			}
		}
		return true
	case []any:
		live, _ := live.([]any)
		return slices.EqualFunc(want, live, within)
	}
	return Equal(want, live)
}
