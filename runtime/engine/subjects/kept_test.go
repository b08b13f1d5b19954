package subjects

import (
	"reflect"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
)

func TestWhatIsKeptOfASubjectIsRead(t *testing.T) {
	s := objects("x").At("x")
	layer := []effect.ValueOp{{Op: effect.OpSet, Path: []string{"a"}, Value: "<b>"}}
	kept, err := s.Keep(layer, effect.Memory{State: map[string]any{"n": int64(1), "token": "s3cret"}, StateSecrets: [][]string{{"token"}}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := Decode[KeptLayer](kept[s.Keys()[0]])
	if err != nil || k.Hook != "web/a" || k.Key != "x" || !strings.Contains(string(k.Ops), "<b>") {
		t.Errorf("the layer is %+v, error %v", k, err)
	}
	if ops, err := values.DecodeOps(k.Ops); err != nil || !values.Equal(ops, layer) {
		t.Errorf("the layer is %v, error %v", ops, err)
	}
	state, err := Decode[KeptState](kept[s.Keys()[1]])
	want := KeptState{Of{"web/a", "x"}, map[string]any{"n": int64(1), "token": "s3cret"}, [][]string{{"token"}}}
	if err != nil || !reflect.DeepEqual(state, want) {
		t.Errorf("the state is %+v, error %v", state, err)
	}
}

func TestNothingIsKeptOfASubjectThatHasNothing(t *testing.T) {
	s := New("web/a", false).At("")
	kept, err := s.Keep(nil, effect.Memory{})
	if err != nil || len(kept) != 2 {
		t.Fatalf("kept %v, error %v", kept, err)
	}
	for _, key := range s.Keys() {
		if data, there := kept[key]; !there || data != nil {
			t.Errorf("%s: %s", key, data)
		}
	}
	if _, err := s.Keep(nil, effect.Memory{State: map[string]any{"x": strings.Repeat("x", effect.MaxKept)}}); err == nil {
		t.Error("a state is kept that no Secret can hold")
	}
}
