package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

func callHTTPGather(c *call) (starlark.Value, error) {
	list, parallel := c.Arg("requests").(starlark.Indexable), c.IntOr("parallel", 8)
	if list.Len() > maxGathered {
		return nil, fmt.Errorf("requests: %d are more than %d", list.Len(), maxGathered)
	}
	requests, size := make([]effect.Request, list.Len()), 0
	for i := range requests {
		var err error
		if requests[i], err = c.gathered(list.Index(i)); err != nil {
			return nil, fmt.Errorf("requests[%d]: %w", i, err)
		}
		if size += len(requests[i].Body); size > maxHTTPBody {
			return nil, fmt.Errorf("requests[%d]: the bodies are larger than %d MiB together", i, maxHTTPBody>>20)
		}
	}
	got, err := c.answers(requests, parallel)
	if err != nil {
		return nil, err
	}
	return listOf(got, responseOf), nil
}

// gathered reads one request of http.gather, as if http.request were called with it.
func (c *call) gathered(v starlark.Value) (effect.Request, error) {
	var kwargs []starlark.Tuple
	method := false
	if m, is := v.(starlark.IterableMapping); is {
		for k, e := range starlark.Entries(m) {
			name, ok := starlark.AsString(k)
			if !ok {
				return effect.Request{}, fmt.Errorf("key: got %s, want string", k.Type())
			}
			method = method || name == "method"
			kwargs = append(kwargs, starlark.Tuple{starlark.String(name), e})
		}
	} else if _, is := spec.OpenText(v); is {
		kwargs = append(kwargs, starlark.Tuple{starlark.String("url"), v})
	} else {
		return effect.Request{}, fmt.Errorf("got %s, want a URL or a dict with the arguments of http.request", v.Type())
	}
	if !method {
		kwargs = append(kwargs, starlark.Tuple{starlark.String("method"), starlark.String("GET")})
	}
	one := &call{Call: &spec.Call{Spec: &spec.Spec{Name: "http.request", Params: requestParams()}}, ctx: c.ctx, run: c.run}
	if err := one.Bind(nil, kwargs); err != nil {
		return effect.Request{}, err
	}
	return one.asked()
}
