package script

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// textSize returns about how many bytes the text of v and so many more take while they are
// put together, or why there is none.
func textSize(what string, more int, v starlark.Value) (int, error) {
	size, deep := object.TextSize(v, maxText)
	switch {
	case deep:
		return 0, fmt.Errorf("%s: values lie in each other more than %d deep", what, object.MaxTextNesting)
	case size+more > maxText:
		return 0, tooLong(what)
	}
	return 2 * (size + more), nil
}
