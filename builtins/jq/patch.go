package jq

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// Patch runs the program of k8s.patch(jq=) on an object, which it leaves alone,
// and returns the new object. It is bounded as jq() is. Errors are lines
// for people; they show nothing of the object but what the program itself raises.
func Patch(ctx context.Context, program string, obj map[string]any) (map[string]any, error) {
	code, err := compile(program)
	if err != nil {
		return nil, err
	}
	outputs, err := run(ctx, patchRoom(), code, object.New(obj), 2)
	if err != nil {
		return nil, err
	}
	if len(outputs) != 1 {
		return nil, errors.New("it must return one value, the whole new object")
	}
	plain, err := object.ToPlain(outputs[0])
	if err != nil {
		return nil, err
	}
	after, ok := plain.(map[string]any)
	if !ok {
		return nil, errors.New("it must return the whole new object, not a " + outputs[0].Type())
	}
	return after, nil
}

// maxPatch is by how many bytes the heap may grow while a patch is worked out. No run
// goes on by then, whose limits would see it.
const maxPatch = 128 << 20

// patchRoom looks at the heap every few steps.
func patchRoom() func(int) error {
	heap := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap[:])
	before, steps := heap[0].Value.Uint64(), 0
	return func(int) error {
		if steps++; steps%8 != 0 {
			return nil
		}
		metrics.Read(heap[:])
		if now := heap[0].Value.Uint64(); now > before+maxPatch {
			runtime.GC()
			metrics.Read(heap[:])
			if heap[0].Value.Uint64() > before+maxPatch {
				return &spec.LimitError{Limit: "memory", Detail: fmt.Sprintf("a jq program took more than %d MiB", maxPatch>>20)}
			}
		}
		return nil
	}
}
