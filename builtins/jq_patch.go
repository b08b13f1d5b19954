package builtins

import (
	"context"
	"errors"

	"github.com/starling-operator/starling/runtime/object"
)

// PatchJQ runs the program of k8s.patch(jq=) on an object, which it leaves alone,
// and returns what the object is to be. It is bounded as jq() is. Errors are lines
// for people; they show nothing of the object but what the program itself raises.
func PatchJQ(ctx context.Context, program string, obj map[string]any) (map[string]any, error) {
	code, err := compileJQ(program)
	if err != nil {
		return nil, err
	}
	outputs, err := runJQ(ctx, code, object.New(obj), 2)
	if err != nil {
		return nil, err
	}
	if len(outputs) != 1 {
		return nil, errors.New("it must return one value, the whole object as it is to be")
	}
	plain, err := object.ToPlain(outputs[0])
	if err != nil {
		return nil, err
	}
	after, ok := plain.(map[string]any)
	if !ok {
		return nil, errors.New("it must return the whole object as it is to be, not a " + outputs[0].Type())
	}
	return after, nil
}
