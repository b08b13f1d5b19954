package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// boundedText returns str or repr with the limits.
func boundedText(name string) *starlark.Builtin {
	return bounded(name, func(args starlark.Tuple) error {
		if len(args) == 1 {
			return textFits(name, 0, args[0])
		}
		return nil
	})
}

// textFits refuses v when its text and so many bytes more are over the limit.
func textFits(what string, more int, v starlark.Value) error {
	size, deep := object.TextSize(v, maxText)
	switch {
	case deep:
		return fmt.Errorf("%s: values lie in each other more than %d deep", what, object.MaxTextNesting)
	case size+more > maxText:
		return tooLong(what)
	}
	return nil
}

func tooLong(what string) error {
	return fmt.Errorf("%s: the result would have more than %d bytes", what, maxText)
}

// formattedSize is how long s.format(args) gets at most.
func formattedSize(s string, args starlark.Tuple) int {
	longest := 0
	for _, v := range args {
		size, deep := object.TextSize(v, maxText)
		if deep || size > maxText {
			return maxText + 1
		}
		longest = max(longest, size)
	}
	return len(s) + strings.Count(s, "{")*longest
}
