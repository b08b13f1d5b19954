package executor

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// Commit writes objects in call order. The first failing write ends it.
func (x *Executor) Commit(ctx context.Context, a engine.Commit) error {
	return a.Seen.Err(x.commit(ctx, a)) // the API server quotes what it refuses
}

func (x *Executor) commit(ctx context.Context, a engine.Commit) error {
	manager := effect.Manager(a.Hook.ID)
	for i, w := range a.Writes {
		w.Cause = a.Cause
		if err := x.write(ctx, a.Module, manager, w); err != nil {
			at := ""
			if w.Pos != "" {
				at = w.Pos + ": "
			}
			if len(a.Writes) > 1 {
				return fmt.Errorf("%s%w (%d of %d written)", at, err, i, len(a.Writes))
			}
			return fmt.Errorf("%s%w", at, err)
		}
	}
	return nil
}

// Save keeps what a module's hooks have set.
func (x *Executor) Save(ctx context.Context, a engine.Save) error {
	return x.o.Kept.Save(ctx, a.Module, a.Data)
}

// write carries out one write of a hook. Objects that a hook makes for its chart come before
// the first install, which else makes the module's namespace: so it is made here when
// it is what a write misses.
func (x *Executor) write(ctx context.Context, module, manager string, w effect.Write) error {
	err := x.o.Writer.Write(ctx, manager, w)
	if err == nil {
		return nil
	}
	namespace := ""
	if g := x.generation.Load(); g != nil && g.Modules[module] != nil {
		namespace = g.Modules[module].Decl.Namespace
	}
	if namespace == "" || !missesNamespace(err, namespace) {
		return err
	}
	if err := x.o.Releases.EnsureNamespace(ctx, namespace); err != nil {
		return err
	}
	return x.o.Writer.Write(ctx, manager, w)
}

// missesNamespace reports whether a write has failed because its namespace is not
// there.
func missesNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}
