package modules

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// definer is an API server that may have a definition, and may serve its kind.
type definer struct {
	live     map[string]any
	get, put error
	served   bool
	applied  int
}

func (d *definer) Get(context.Context, effect.Ref) (map[string]any, error) { return d.live, d.get }

func (d *definer) Write(_ context.Context, _ string, w effect.Write) (map[string]any, error) {
	if d.put == nil {
		d.applied++
		d.served = true
	}
	return w.Object, d.put
}

func (d *definer) Mapping(context.Context, string, string) (m cluster.Mapping, err error) {
	if !d.served {
		err = cluster.ErrNotServed
	}
	return m, err
}

func TestDefine(t *testing.T) {
	of := func(number string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{numberAnnotation: number}}}
	}
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, DefinitionName, errors.New("no"))
	for name, tt := range map[string]struct {
		d                  definer
		changed, forbidden bool
	}{
		"there is none":                {definer{}, true, false},
		"an older one":                 {definer{live: of("0"), served: true}, true, false},
		"one without a number":         {definer{live: of(""), served: true}, true, false},
		"the same":                     {definer{live: of("3"), served: true}, false, false},
		"a newer one":                  {definer{live: of("7"), served: true}, false, false},
		"not readable, and served":     {definer{get: no, served: true}, false, false},
		"not readable, and not served": {definer{get: no}, false, true},
		"not writable":                 {definer{put: no}, false, true},
		"an older one, not writable":   {definer{live: of("0"), put: no, served: true}, false, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		changed, err := Define(ctx, &tt.d)
		cancel()
		if changed != tt.changed || apierrors.IsForbidden(err) != tt.forbidden || err != nil && !tt.forbidden || changed != (tt.d.applied == 1) {
			t.Errorf("%s: changed %t, applied %d, %v", name, changed, tt.d.applied, err)
		}
	}
}
