package values

import (
	"slices"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// The secrets of all layers are known as layers come, change and go.
func TestSecretTextsFollowTheLayers(t *testing.T) {
	marked := func(text string) []effect.ValueOp {
		return []effect.ValueOp{{Op: effect.OpSet, Path: []string{text}, Value: text, Secrets: [][]string{{}}}}
	}
	c := NewComposer(Section{Name: "web", Key: "web"})
	for _, step := range []struct {
		hook string
		ops  []effect.ValueOp
		want []string
	}{
		{"a", []effect.ValueOp{{Op: effect.OpSet, Path: []string{"x"}, Value: "open-text"}}, nil},
		{"b", marked("first-secret"), []string{"first-secret"}},
		{"a", marked("second-secret"), []string{"second-secret", "first-secret"}},
		{"b", nil, []string{"second-secret"}},
		{"a", nil, nil},
	} {
		c = c.WithHook(step.hook, step.ops)
		if got := c.SecretTexts(); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.hook, got, step.want)
		}
		if got := c.WithConfig(nil).WithHooks(c.Section().Hooks).SecretTexts(); !slices.Equal(got, step.want) {
			t.Errorf("anew, after %s: %v, want %v", step.hook, got, step.want)
		}
	}
}
