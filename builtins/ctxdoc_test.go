package builtins

import (
	"slices"
	"testing"
)

func TestAllOfCtxIsInTheReference(t *testing.T) {
	var names []string
	for _, f := range ctxDocs {
		names = append(names, f.name)
	}
	if want := CtxFields(); !slices.Equal(names, want) {
		t.Errorf("the reference has %v, ctx has %v", names, want)
	}
}
