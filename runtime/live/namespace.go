package live

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/effect"
)

// write carries out one write of a hook. What a hook makes for its chart comes before
// the first install, which else makes the module's namespace: so it is made here when
// it is what a write misses.
func (d *Driver) write(module, manager string, w effect.Write) error {
	err := d.writer.Write(d.work, manager, w)
	if err == nil {
		return nil
	}
	namespace := ""
	if g := d.o.Generation; g != nil && g.Modules[module] != nil {
		namespace = g.Modules[module].Decl.Namespace
	}
	if namespace == "" || !missesNamespace(err, namespace) {
		return err
	}
	if err := d.releases.EnsureNamespace(d.work, namespace); err != nil {
		return err
	}
	return d.writer.Write(d.work, manager, w)
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
