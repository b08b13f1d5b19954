package store

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/starling-operator/starling/runtime/definition"
)

const (
	// crdFinalizer holds a CRD until its objects are gone.
	crdFinalizer = "customresourcecleanup.apiextensions.k8s.io"
	// maxCustom bounds how many versions of CRDs are remembered for other stores.
	maxCustom = 500
)

var (
	crdResource = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
	crdGVR      = crdResource.WithVersion("v1")
)

// crdVersion is what one version of a CRD says of its objects.
type crdVersion struct {
	*definition.Version
	name    string   // of the CRD
	storage string   // version in which objects are stored
	fields  []string // that selectors may use, as in "spec.size"
}

// says is what it says of one object; nil without a CRD.
func (v *crdVersion) says() *definition.Version {
	if v == nil {
		return nil
	}
	return v.Version
}

// readCRD reads a CRD; the error says what is wrong with it in the server's way.
func readCRD(obj map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, crd); err != nil {
		return nil, err
	}
	return crd, nil
}

// checkCRD says whether a CRD can be served.
func checkCRD(b *Builtins, obj, old map[string]any) (field.ErrorList, error) {
	crd, err := readCRD(obj)
	if err != nil {
		return nil, err
	}
	var errs field.ErrorList
	spec, names := field.NewPath("spec"), crd.Spec.Names
	if want := names.Plural + "." + crd.Spec.Group; old == nil && crd.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.Name, "must be spec.names.plural+\".\"+spec.group"))
	}
	for _, f := range []struct{ path, v string }{{"plural", names.Plural}, {"kind", names.Kind}} {
		if f.v == "" {
			errs = append(errs, field.Required(spec.Child("names", f.path), ""))
		}
	}
	if crd.Spec.Group == "" {
		errs = append(errs, field.Required(spec.Child("group"), ""))
	} else if !strings.Contains(crd.Spec.Group, ".") {
		errs = append(errs, field.Invalid(spec.Child("group"), crd.Spec.Group, "should be a domain with at least one dot"))
	}
	if crd.Spec.Scope != apiextensionsv1.ClusterScoped && crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
		errs = append(errs, field.NotSupported(spec.Child("scope"), crd.Spec.Scope, []string{"Cluster", "Namespaced"}))
	}
	stored := 0
	for i, v := range crd.Spec.Versions {
		if v.Storage {
			stored++
		}
		path := spec.Child("versions").Index(i)
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			errs = append(errs, field.Required(path.Child("schema", "openAPIV3Schema"), ""))
			continue
		}
		var unfit *definition.Unfit
		if _, err := b.readVersion(crd, &v); errors.As(err, &unfit) {
			errs = append(errs, unfit.Errs...)
		} else if err != nil {
			errs = append(errs, field.Invalid(path.Child("schema", "openAPIV3Schema"), "", err.Error()))
		}
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(spec.Child("versions"), crd.Spec.Versions, "must have exactly one version marked as storage version"))
	}
	if stored == 0 {
		errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions"), nil, "must have at least one stored version"))
	}
	if old != nil {
		errs = append(errs, fixedDefinition(obj, old)...)
	}
	return errs, nil
}

// readVersion makes a kind of one version, or finds the one that another store has
// made of the same CRD.
func (b *Builtins) readVersion(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*kind, error) {
	spec, err := json.Marshal(crd.Spec)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", crd.Name, v.Name, spec))
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.custom[key]; k != nil {
		return k, nil
	}
	k, err := newVersion(b, crd, v)
	if err != nil {
		return nil, err
	}
	if len(b.custom) >= maxCustom {
		clear(b.custom)
	}
	b.custom[key] = k
	return k, nil
}

// newVersion makes a kind of one version.
func newVersion(b *Builtins, crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*kind, error) {
	k := &kind{Kind: Kind{
		Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind, Plural: crd.Spec.Names.Plural, Singular: crd.Spec.Names.Singular,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, ShortNames: crd.Spec.Names.ShortNames, Categories: crd.Spec.Names.Categories,
		Status: v.Subresources != nil && v.Subresources.Status != nil, Scale: v.Subresources != nil && v.Subresources.Scale != nil,
	}, generation: true, versioned: true}
	read, err := definition.New(crd, v)
	if err != nil {
		return nil, err
	}
	k.crd = &crdVersion{Version: read, name: crd.Name}
	for _, f := range v.SelectableFields {
		k.crd.fields = append(k.crd.fields, strings.TrimPrefix(f.JSONPath, "."))
	}
	for _, each := range crd.Spec.Versions {
		if each.Storage {
			k.crd.storage = each.Name
		}
	}
	k.types = crdConverter(crd)
	return k, nil
}

// crdChanged serves the kinds of a CRD that has appeared or changed, and no longer
// those of one that is gone.
func (s *Store) crdChanged(before, after map[string]any) {
	if before != nil && after != nil && equalBut(before, after, "metadata") && deleting(before) == deleting(after) {
		return
	}
	if before != nil {
		name := nameOf(before)
		maps.DeleteFunc(s.kinds, func(_ schema.GroupVersionResource, k *kind) bool {
			return k.crd != nil && k.crd.name == name || k.schemaPending && k.groupResource().String() == name
		})
	}
	if after == nil {
		return
	}
	crd, err := readCRD(after)
	if err != nil {
		return // was refused when it was written
	}
	for _, v := range crd.Spec.Versions {
		if !v.Served && !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		k, err := s.o.Builtins.readVersion(crd, &v)
		if err != nil {
			continue
		}
		if v.Served {
			s.kinds[k.GVR()] = k
		}
		if before != nil || s.over == nil { // a new one may be of a kind that was made up, see [Store.Serve]
			s.readAgain(k)
		}
	}
}

// readAgain has the objects that are stored in a version be what its new schema makes of them: the real
// server sets defaults and drops fields whenever it reads one. That is no change.
func (s *Store) readAgain(k *kind) {
	t := s.table(k.groupResource())
	clear(t.unchanged)
	for _, key := range t.keys {
		before := t.objects[key]
		if before["apiVersion"] != k.APIVersion() {
			continue
		}
		t.objects[key] = asDefined(k, before)
		if known := s.knownIn(k); known[key] != nil && versionOf(known[key]) == versionOf(before) {
			known[key] = t.objects[key]
		}
	}
}

// asDefined is a copy of a stored object as the schema of its kind makes it.
func asDefined(k *kind, obj map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(obj)
	if _, err := k.crd.Decode(out, false); err != nil {
		return obj
	}
	return out
}

// establish gives a CRD the status that the real server's controllers give it.
func (s *Store) establish(obj map[string]any) {
	crd, err := readCRD(obj)
	if err != nil {
		return
	}
	names := nested(obj, "spec", "names")
	stored, _ := nested(obj, "status", "storedVersions").([]any)
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(stored, any(v.Name)) {
			stored = append(slices.Clone(stored), v.Name)
		}
	}
	old, _ := nested(obj, "status", "conditions").([]any)
	conditions := slices.Clone(old) // others have theirs: the approval of groups of k8s.io
	for _, c := range []struct{ typ, reason, message string }{
		{"NamesAccepted", "NoConflicts", "no conflicts found"},
		{"Established", "InitialNamesAccepted", "the initial names have been accepted"},
	} {
		since := any(s.now())
		i := slices.IndexFunc(conditions, func(o any) bool { m, _ := o.(map[string]any); return m["type"] == c.typ })
		if i < 0 {
			i, conditions = len(conditions), append(conditions, nil)
		} else if m, _ := conditions[i].(map[string]any); m["status"] == "True" {
			since, _ = m["lastTransitionTime"].(string)
		}
		conditions[i] = map[string]any{"type": c.typ, "status": "True", "reason": c.reason, "message": c.message, "lastTransitionTime": since}
	}
	obj["status"] = map[string]any{"acceptedNames": runtime.DeepCopyJSONValue(names), "conditions": conditions, "storedVersions": stored}
}

// crdDeleting is the answer to a write of an object whose CRD is going.
func (s *Store) crdDeleting(k *kind) error {
	if k.crd == nil {
		return nil
	}
	if crd := s.table(crdResource).objects[k.crd.name]; crd != nil && deleting(crd) {
		err := apierrors.NewMethodNotSupported(k.groupResource(), "create")
		err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
		return err
	}
	return nil
}
