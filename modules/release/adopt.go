package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/apply"
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

// claim refuses objects of the target that others still have, and notes that it waits for them.
func (m *Manager) claim(ctx context.Context, t Target, objects []chart.Object) error {
	if !t.Adopt {
		m.claims.Delete(t.Ref())
		return nil
	}
	objects = m.placed(objects)
	holders := make([]string, len(objects))
	err := apply.SideBySide(len(objects), lookBeside, func(i int) (err error) {
		if !objects[i].Hook {
			holders[i], err = m.holder(ctx, t.Ref(), objects[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("asking whose the objects are that module(adopt = True) may take over: %w", err)
	}
	waits := map[Key]bool{}
	var refused error
	for i, o := range objects {
		if holders[i] == "" {
			continue
		}
		waits[o.AnyVersion()] = true
		o.Ref = o.In(t.Namespace)
		waits[o.AnyVersion()] = true
		if refused == nil {
			refused = fmt.Errorf("%s is not taken over, as %s: take it out there, or leave it out here", o, holders[i])
		}
	}
	if refused == nil {
		m.claims.Delete(t.Ref())
	} else {
		m.claims.Store(t.Ref(), claims{waits, time.Now().Add(waitsFor)})
	}
	return refused
}

// holder says who has an object that is there, "" for nobody.
func (m *Manager) holder(ctx context.Context, ref Ref, o chart.Object) (string, error) {
	mapping, err := m.o.Mapper.RESTMapping(o.GVK().GroupKind(), o.GVK().Version)
	if meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	at := keyOf(mapping, o.In(ref.Namespace).Namespace, o.Name)
	live, err := m.meta.Resource(mapping.Resource).Namespace(at.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	other := Ref{Name: live.Annotations[helmName], Namespace: live.Annotations[helmNamespace]}
	if other.Name == ref.Name && other.Namespace == ref.Namespace {
		return "", nil
	}
	if other.Name != "" {
		held, err := m.holds(ctx, other, at)
		if held || err != nil {
			return fmt.Sprintf("it is of release %s", other), err
		}
	}
	if by := m.maker(live, ref); by != "" {
		return by, nil
	}
	delete(live.Annotations, helmName)
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return "", err
	}
	own := effect.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: at.Namespace, Name: o.Name}
	if m.o.Seal.MadeBy(own, obj, m.instance().Mark(ref.Module)) { // an object that a hook of the module has made
		delete(obj["metadata"].(map[string]any)["annotations"].(map[string]any), effect.MadeByAnnotation)
	}
	return children.Keeper(obj, children.Parent{}), nil
}

// maker says which other Starling, or other module of this one, has made an object that carries no mark of a release,
// "" for none. A module that has left the tree has nothing there any more.
func (m *Manager) maker(live *metav1.PartialObjectMetadata, ref Ref) string {
	if of := live.Labels[effect.InstanceLabel]; of != "" {
		return "it belongs to the starling instance of " + of
	}
	mark, _, _ := strings.Cut(live.Annotations[effect.DefinedByAnnotation], " ")
	if at := strings.LastIndexByte(mark, '/'); at > 0 {
		switch module := mark[at+1:]; {
		case mark[:at]+"/" != m.instance().Mark(""):
			return "it is defined by the starling instance of " + mark
		case m.others(module, ref):
			return "it is defined by module " + module
		}
	}
	for _, f := range live.ManagedFields {
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
	return slices.ContainsFunc(objects, func(o chart.Object) bool {
		is := o.In(ref.Namespace)
		if key.Namespace == "" {
			is.Namespace = ""
		}
		return is.AnyVersion() == key.AnyVersion()
	}), nil
}

// claimed says whether another release waits for an object.
func (m *Manager) claimed(ref Ref, key Key) (found bool) {
	m.claims.Range(func(by, waits any) bool {
		c := waits.(claims)
		found = by.(Ref) != ref && c.of[key.AnyVersion()] && time.Now().Before(c.until)
		return !found
	})
	return found
}
