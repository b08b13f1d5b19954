package engine

import (
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// The line that is told with contested objects can be pasted.
func TestTheLineThatLeavesAnObject(t *testing.T) {
	got := leaveIt([]effect.Ref{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}})
	const want = `. End the other writer, or leave it to that with module(ignore = ["Deployment/web"]), and a field after the name for one field alone`
	if got != want {
		t.Errorf("got %s", got)
	}
}
