package release

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/effect"
)

// A definition belongs to whoever has made it: what it lacks, all objects of its kind lose
// (docs/decisions/0087).

// definer is somebody else who has made a definition.
type definer struct {
	// name is for people.
	name string
	// instance is another Starling, as [effect.Instance.Mark] has it, and sum what it has applied.
	instance, sum string
	// release is one of Helm that holds the definition.
	release Ref
}

// sumText is the digest of a definition as its annotation has it.
func (c *crd) sumText() string { return hex.EncodeToString(c.sum[:8]) }

// definedBy says who has made a definition; zero: this instance, or there is none. The
// annotation tells instances apart, which write under one name. Definitions of versions without
// it are those of the first instance that looks.
func (m *Manager) definedBy(live *metav1.PartialObjectMetadata) definer {
	if live == nil {
		return definer{}
	}
	mark, sum, _ := strings.Cut(live.Annotations[effect.DefinedByAnnotation], " ")
	if i := strings.LastIndexByte(mark, '/'); mark != "" && mark[:max(i, 0)] != strings.TrimSuffix(m.instance().Mark(""), "/") {
		return definer{name: "the starling instance of " + mark, instance: mark, sum: sum}
	}
	fields := specFields(live)
	if !fields.ours && mark == "" || !fields.version && (fields.declared != "" || live.Annotations[helmName] != "") {
		if name := live.Annotations[helmName]; name != "" {
			ref := Ref{Name: name, Namespace: live.Annotations[helmNamespace]}
			return definer{name: "release " + ref.String(), release: ref}
		}
		return definer{name: cmp.Or(fields.declared, fields.others, "somebody else")}
	}
	return definer{}
}

const (
	helmName      = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
)

// specOwners is who owns the spec of a definition.
type specOwners struct {
	// ours says that Starling has applied it, version that its versions are as Starling has
	// applied them.
	ours, version bool
	// declared is a manager that applies the versions, too, others one that has written them.
	declared, others string
}

func specFields(live *metav1.PartialObjectMetadata) (out specOwners) {
	for _, f := range live.ManagedFields {
		var set struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if f.Subresource != "" || f.FieldsV1 == nil || json.Unmarshal(f.FieldsV1.GetRawBytes(), &set) != nil || len(set.Spec) == 0 {
			continue
		}
		_, versions := set.Spec["f:versions"]
		applies := f.Operation == metav1.ManagedFieldsOperationApply
		switch {
		case applies && f.Manager == fieldManager:
			out.ours, out.version = true, versions
		case versions && applies:
			out.declared = f.Manager
		case versions:
			out.others = f.Manager
		}
	}
	return out
}

// definerIsThere says whether somebody is still there who has made a definition: it is not taken over
// then. Of a tool without a trace in the cluster nobody can say that.
func (m *Manager) definerIsThere(ctx context.Context, by definer, own Ref) bool {
	switch {
	case by.instance != "":
		at := strings.Split(by.instance, "/")
		if len(at) != 3 {
			return true
		}
		lease := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		_, err := m.meta.Resource(lease).Namespace(at[0]).Get(ctx, at[1], metav1.GetOptions{})
		return !apierrors.IsNotFound(err)
	case by.release.Name != "" && (by.release.Name != own.Name || by.release.Namespace != own.Namespace):
		last, err := m.latest(ctx, by.release)
		return err != nil || last.Number > 0
	}
	return false
}

// notReplaced is the error about a definition of somebody else.
func (m *Manager) notReplaced(c *crd, by definer) error {
	do := "leave out one of the two or, once nobody needs that one, take it over with module(adopt = True)"
	if c.of.adopt {
		do = "leave out one of the two, or remove that one first"
	}
	return fmt.Errorf("CustomResourceDefinition %s is there, differs, and belongs to %s: %s", c.object.GetName(), by.name, do)
}
