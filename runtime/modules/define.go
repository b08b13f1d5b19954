package modules

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// Definition is the CustomResourceDefinition, as YAML.
//
//go:embed crd.yaml
var Definition []byte

const (
	// DefinitionName is the name of the CustomResourceDefinition.
	DefinitionName = effect.ModuleDefinition
	// numberAnnotation numbers the definitions of versions of Starling.
	numberAnnotation = "starling.dev/definition"
	// servedWithin is how long the API server may take until it serves a definition.
	servedWithin = 30 * time.Second
)

// Definer is what [Define] needs of a client.
type Definer interface {
	Writer
	Get(ctx context.Context, ref effect.Ref) (map[string]any, error)
	Mapping(ctx context.Context, apiVersion, kind string) (cluster.Mapping, error)
}

// Define applies the definition unless the API server has this one, or that of a later version,
// and waits until it is served. Without the right to look at it, it is taken to be there if its
// kind is served. Changed says that it was applied.
func Define(ctx context.Context, c Definer) (changed bool, err error) {
	definition := map[string]any{}
	if err := yaml.Unmarshal(Definition, &definition); err != nil {
		return false, err
	}
	ref := effect.RefOf(definition)
	live, err := c.Get(ctx, ref)
	if err == nil && live != nil && numberOf(live) >= numberOf(definition) {
		return false, nil
	}
	if err == nil {
		_, err = c.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: ref, Object: definition, Force: true})
	}
	if apierrors.IsForbidden(err) {
		if _, unknown := c.Mapping(ctx, APIVersion, Kind); unknown == nil {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	for end := time.Now().Add(servedWithin); ; {
		_, err := c.Mapping(ctx, APIVersion, Kind)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, cluster.ErrNotServed), time.Now().After(end):
			return true, fmt.Errorf("%s was applied, but is not served: %w", ref, err)
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// numberOf is the number of a definition; 0: it has none.
func numberOf(definition map[string]any) int {
	n, _ := strconv.Atoi(effect.At[string](definition, "metadata", "annotations", numberAnnotation))
	return n
}
