package builtins

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/crd"
	"github.com/starling-operator/starling/builtins/spec"
)

func crdSpecs() []spec.Spec {
	return []spec.Spec{declare("crd", spec.InLoad, spec.NoEffect, callCRD, crd.Params()...), crd.Field()}
}

func callCRD(c *call) (starlark.Value, error) {
	file := c.ctx.File
	switch {
	case file.Role&RoleModule == 0:
		return nil, fmt.Errorf("only module.star declares kinds; this is %s", file.Path)
	case path.Dir(file.Path) == "global":
		return nil, errors.New("global hooks are no module; declare the kind in the module.star of a module")
	}
	d, err := crd.Define(c.Call)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(file.CRDs, func(o crd.Definition) bool { return o.Name == d.Name }); i >= 0 {
		return nil, fmt.Errorf("%s is declared at %s already; other versions of a kind stand in versions", d.Name, file.CRDs[i].Pos)
	}
	file.CRDs = append(file.CRDs, d)
	return nil, nil
}
