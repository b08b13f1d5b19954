package effect

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// InstanceLabel is on the objects of an instance: its own, and its release Secrets; not
// on what charts make. Its value is that of [Instance.Label].
const InstanceLabel = "starling.dev/instance"

// ModuleLabel names the module that a release or a webhook configuration belongs to.
const ModuleLabel = "starling.dev/module"

// ReleasedByLabel is on the objects that releases of an instance hold, by which they are watched for drift; its value
// is that of [Instance.Label]. It is no [InstanceLabel]: hooks see such objects, and grants cover them.
const ReleasedByLabel = "starling.dev/released-by"

// DefinedByAnnotation is on a CustomResourceDefinition of crds/: the mark of the module that has
// applied it, see [Instance.Mark], and a digest of the definition.
const DefinedByAnnotation = "starling.dev/defined-by"

// ConvertedByAnnotation says on a CustomResourceDefinition which instance converts it, by its [InstanceLabel].
// GivenBack stands behind that once the instance leaves the conversion to one that has the module.
const (
	ConvertedByAnnotation = "starling.dev/conversion"
	GivenBack             = " given-back"
)

// Instance names one Starling, and tells which objects belong to it. No grant covers these: who could write the user's
// ConfigMap could switch modules off, and the Secrets hold what all modules keep.
type Instance struct {
	// Namespace is the operator's, Name the instance's in it.
	Namespace, Name string
}

// Label is the value of [InstanceLabel]: "<namespace>.<name>", which ends in a hash where
// it would be longer than the 63 characters of a label.
func (i Instance) Label() string {
	label := i.Namespace + "." + i.Name
	if len(label) <= 63 {
		return label
	}
	sum := sha256.Sum256([]byte(label))
	return label[:46] + "-" + hex.EncodeToString(sum[:8])
}

// Prefix begins the names of the instance's objects that are in no namespace.
func (i Instance) Prefix() string {
	return strings.ToLower(strings.ReplaceAll(i.Label(), "_", "-")) + "."
}

// Owns reports whether an object belongs to the instance, by its name: the user's ConfigMap and that of releases, the
// Lease, the Secrets with what hooks, sets and releases keep, with certificates and with the keys of records and marks,
// and the webhook configurations. The Secrets of Helm's releases count in every namespace, and all Module objects do,
// since their names do not say whose they are.
func (i Instance) Owns(ref Ref) bool {
	if i == (Instance{}) {
		return false
	}
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	if !grouped {
		group = ""
	}
	here := ref.Namespace == i.Namespace
	switch group + "/" + ref.Kind {
	case "/ConfigMap":
		return here && (ref.Name == i.Name || ref.Name == i.Name+"-releases")
	case "/Secret":
		if strings.HasPrefix(ref.Name, "sh.helm.release.v1.") {
			return true
		}
		rest, ours := strings.CutPrefix(ref.Name, i.Name+"-")
		return here && ours && (rest == "webhooks" || rest == "records" || rest == "marks" || strings.HasPrefix(rest, "kept-") || strings.HasPrefix(rest, "set-") || strings.HasPrefix(rest, "releases-"))
	case "coordination.k8s.io/Lease":
		return here && ref.Name == i.Name
	case "starling.dev/Module":
		return true
	case "apiextensions.k8s.io/CustomResourceDefinition":
		return ref.Name == ModuleDefinition
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		return strings.HasPrefix(ref.Name, i.Prefix())
	}
	return false
}

// MayBeOthers is the label selector of an object of this name that belongs to no Starling at all, "" where the name
// says that already. A ConfigMap that a user has written for another instance has no mark: Module objects tell of it.
func MayBeOthers(ref Ref) string {
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	if !grouped {
		group = ""
	}
	may := false
	switch group + "/" + ref.Kind {
	case "/ConfigMap":
		may = strings.HasSuffix(ref.Name, "-releases")
	case "/Secret":
		may = slices.ContainsFunc([]string{"-webhooks", "-records", "-marks", "-kept-", "-set-", "-releases-"}, func(part string) bool { return strings.Contains(ref.Name, part) })
	case "coordination.k8s.io/Lease", "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		may = true
	}
	if !may {
		return ""
	}
	return "!" + InstanceLabel
}

// LivesIn reports whether an object is the operator's namespace, with which all that the instance owns would go.
func (i Instance) LivesIn(ref Ref) bool {
	return i.Namespace != "" && ref.APIVersion == "v1" && ref.Kind == "Namespace" && ref.Name == i.Namespace
}

// Runs reports whether a Pod runs Starling, this instance or another one: it has the label of the Deployment that is
// shipped. A module that could run commands there could read all that an instance keeps.
func (i Instance) Runs(pod map[string]any) bool {
	return i.Namespace != "" && texts(pod, "labels")["app.kubernetes.io/name"] == "starling"
}

// serviceAccount names, as an annotation of a Secret, whose token it holds.
const serviceAccount = "kubernetes.io/service-account.name"

// HoldsToken reports whether an object is a Secret with the token of a ServiceAccount, or asks for one. In the
// operator's namespace no grant covers these: with the operator's token a module could do all that the operator may.
func HoldsToken(apiVersion, kind string, obj map[string]any) bool {
	if apiVersion != "v1" || kind != "Secret" {
		return false
	}
	annotations := At[map[string]any](obj, "metadata", "annotations")
	return obj["type"] == "kubernetes.io/service-account-token" || annotations[serviceAccount] != nil
}

// AsksForToken reports whether a patch may make such a Secret of the object.
func (i Instance) AsksForToken(ref Ref, patch any) bool {
	if i == (Instance{}) || ref.APIVersion != "v1" || ref.Kind != "Secret" || ref.Namespace != i.Namespace {
		return false
	}
	var asks func(v any) bool
	asks = func(v any) bool {
		switch v := v.(type) {
		case string:
			return strings.Contains(v, "service-account")
		case map[string]any:
			for key, e := range v {
				if asks(key) || asks(e) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, asks)
		}
		return false
	}
	return asks(patch)
}

// OwnsObject is Owns for an object that is at hand: one with the label of any instance counts, too, and a token of the
// operator's namespace. apiVersion and kind are given, since items of lists may not say them.
func (i Instance) OwnsObject(apiVersion, kind string, obj map[string]any) bool {
	if i == (Instance{}) {
		return false
	}
	ref := RefOf(obj)
	ref.APIVersion, ref.Kind = apiVersion, kind
	if i.Owns(ref) || ref.Namespace == i.Namespace && HoldsToken(apiVersion, kind, obj) {
		return true
	}
	switch kind {
	case "ConfigMap", "Secret", "Lease", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return texts(obj, "labels")[InstanceLabel] != ""
	}
	return false
}
