package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
	children "github.com/starling-operator/starling/runtime/reconcile"
)

// module(adopt = True) takes an object over from nobody who still has it: the other release would look ready without
// it, or delete it (docs/decisions/0087). While it waits, a release that drops the object, or ends, leaves it there.

// waitsFor is how long a release waits for objects after its last try; it is tried every five minutes. A module that is
// switched off has no more tries.
const waitsFor = 15 * time.Minute

// claims are the objects that a release waits for, until a time.
type claims struct {
	of    map[Key]bool // by identity
	until time.Time
}

// holder says who else than a release has an object that is there, "" for nobody.
func (m *Manager) holder(ctx context.Context, ref Ref, key Key, live *unstructured.Unstructured) (string, error) {
	annotations := live.GetAnnotations()
	other := Ref{Name: annotations[helmName], Namespace: annotations[helmNamespace]}
	if other.Name == ref.Name && other.Namespace == ref.Namespace {
		return "", nil
	}
	if other.Name != "" {
		held, err := m.holds(ctx, other, key)
		if held || err != nil {
			return fmt.Sprintf("it is of release %s", other), err
		}
	}
	if by := m.maker(live, ref); by != "" {
		return by, nil
	}
	delete(annotations, helmName)
	if m.o.Seal.MadeBy(key, live.Object, m.instance().Mark(ref.Module)) { // an object that a hook of the module has made
		delete(annotations, effect.MadeByAnnotation)
	}
	live = live.DeepCopy()
	live.SetAnnotations(annotations)
	return children.Keeper(live.Object, children.Parent{}), nil
}

// maker says which other Starling, or other module of this one, has made an object that carries no mark of a release,
// "" for none. A module that has left the tree has nothing there any more.
func (m *Manager) maker(live metav1.Object, ref Ref) string {
	if of := live.GetLabels()[effect.InstanceLabel]; of != "" {
		return "it belongs to the starling instance of " + of
	}
	mark, _, _ := strings.Cut(live.GetAnnotations()[effect.DefinedByAnnotation], " ")
	if at := strings.LastIndexByte(mark, '/'); at > 0 {
		switch module := mark[at+1:]; {
		case mark[:at]+"/" != m.instance().Mark(""):
			return "it is defined by the starling instance of " + mark
		case m.others(module, ref):
			return "it is defined by module " + module
		}
	}
	for _, f := range live.GetManagedFields() {
		if module := effect.ManagerModule(f.Manager); f.Operation == metav1.ManagedFieldsOperationApply && m.others(module, ref) {
			return "a hook of module " + module + " has made it"
		}
	}
	return ""
}

// others says whether a module is in the tree that is not the one of a release.
func (m *Manager) others(module string, ref Ref) bool {
	return module != "" && module != ref.Module && (m.o.Folders == nil || m.folder(module) != nil)
}

// holds says whether the newest revision of a release has an object in it.
func (m *Manager) holds(ctx context.Context, ref Ref, key Key) (bool, error) {
	rel, err := m.Last(ctx, ref.Namespace, ref.Name)
	if err != nil || rel == nil {
		return err != nil, err
	}
	objects, err := chart.ObjectsOf(rel.Manifest)
	if err != nil {
		return true, err
	}
	is := chart.Object{Ref: key}.Identity(ref.Namespace)
	return slices.ContainsFunc(m.placed(objects), func(o chart.Object) bool { return o.Identity(ref.Namespace) == is }), nil
}

// claimed says whether another release waits for an object.
func (m *Manager) claimed(ref Ref, key Key) bool {
	for by, waits := range m.claims.Range {
		if c := waits.(claims); by.(Ref) != ref && c.of[key.AnyVersion()] && time.Now().Before(c.until) {
			return true
		}
	}
	return false
}
