package executor

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// Commit writes objects in call order. The first failing write ends it, unless that write
// says that those after it are made.
func (x *Executor) Commit(ctx context.Context, a engine.Commit) engine.Committed {
	out := engine.Committed{Run: a.Run}
	out.Err = a.Seen.Err(x.commit(ctx, a, &out.Children)) // the API server quotes what it refuses
	for i := range out.Children {
		out.Children[i].Err = a.Seen.Err(out.Children[i].Err)
	}
	return out
}

func (x *Executor) commit(ctx context.Context, a engine.Commit, children *[]effect.Fate) error {
	manager := effect.Manager(a.Hook.ID)
	written, failed := 0, []error(nil)
	for _, w := range a.Writes {
		if len(failed) > 0 && w.Kind == effect.WriteRemoveFinalizer {
			break // what had to be done before the object goes is not done
		}
		w.Cause = a.Cause.Of(w.Pos)
		err := x.write(ctx, a.Module, manager, w, children)
		if err == nil {
			written++
			continue
		}
		at := ""
		if w.Pos != "" && w.Kind != effect.WriteChildren { // each child has its own
			at = w.Pos + ": "
		}
		failed = append(failed, fmt.Errorf("%s%w", at, err))
		if !w.Continue || ctx.Err() != nil || errors.Is(err, cluster.ErrFenced) {
			break
		}
	}
	return notWritten(failed, written, len(a.Writes))
}

// notWritten is the error of a commit, in one line; nil when nothing has failed.
func notWritten(failed []error, written, all int) error {
	err := apply.Joined(failed)
	if err != nil && all > 1 {
		err = fmt.Errorf("%w (%d of %d written)", err, written, all)
	}
	return err
}

// Save keeps what a module's hooks have set.
func (x *Executor) Save(ctx context.Context, a engine.Save) error {
	return x.o.Kept.Save(ctx, a.Module, a.Data)
}

// write carries out one write of a hook. Objects that a hook makes for its chart come before
// the first install, which else makes the module's namespace: so it is made here when
// it is what a write misses. Of a write of children it says what has become of each.
func (x *Executor) write(ctx context.Context, module, manager string, w effect.Write, children *[]effect.Fate) error {
	write := func() (err error) {
		if w.Kind == effect.WriteChildren {
			*children, err = x.o.Writer.Children(ctx, manager, w)
			return err
		}
		return x.o.Writer.Write(ctx, manager, w)
	}
	err := write()
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
	return write()
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
