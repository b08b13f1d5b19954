//go:build e2e

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

// On the wire, hooks that change the user's config at one time, and a user who does so, too, lose
// nothing of each other.
func TestRealConfigWrites(t *testing.T) {
	t.Parallel()
	w := newRealWorld(t)
	ref := w.ref("v1", "ConfigMap", "starling")
	change := func(key, path string, v, was any) effect.Write {
		return effect.Write{Kind: effect.WriteConfig, Ref: ref,
			Config: &effect.ConfigChange{Key: key, Path: strings.Split(path, "."), Value: v, Was: was, Create: true}}
	}
	w.write(change("web", "a", "first", nil))
	w.write(effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchMerge,
		Body: map[string]any{"data": map[string]any{"web": "# mine\na: first # keep\nmine: 1\n"}}}})
	var busy sync.WaitGroup
	for i := range 3 {
		busy.Go(func() {
			if err := w.writer.Write(context.Background(), "starling/web/f", change("web", fmt.Sprintf("b.n%d", i), int64(i), nil)); err != nil {
				t.Error(err)
			}
		})
	}
	busy.Wait()
	text, _ := w.get(ref)["data"].(map[string]any)["web"].(string)
	for _, want := range []string{"# mine\n", "a: first # keep\n", "mine: 1\n", "  n0: 0\n", "  n1: 1\n", "  n2: 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if err := w.refused(change("web", "mine", int64(2), nil), "cannot change the user's config in ConfigMap "+w.ns+"/starling: mine in section web: it is another one"); !errors.Is(err, values.ErrConfigMoved) {
		t.Error(err)
	}
}
