package builtins

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// everyday are the kinds that a release may hold in its own namespace though nothing names
// them. Roles are not among them: they give rights away.
var everyday = map[string]string{
	"":                    " ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount ",
	"apps":                " ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet ",
	"autoscaling":         " HorizontalPodAutoscaler ",
	"batch":               " CronJob Job ",
	"coordination.k8s.io": " Lease ",
	"discovery.k8s.io":    " EndpointSlice ",
	"events.k8s.io":       " Event ",
	"networking.k8s.io":   " Ingress NetworkPolicy ",
	"policy":              " PodDisruptionBudget ",
}

// Everyday reports whether a kind needs no entry in module(installs = […]).
func Everyday(apiVersion, kind string) bool {
	return strings.Contains(everyday[effect.GroupOf(apiVersion)], " "+kind+" ")
}

// MayInstall reports whether a release in namespace may hold the object, by
// module(installs = […]). One without a namespace is in no namespace, or in the release's.
func MayInstall(installs []Grant, ref effect.Ref, namespace string) bool {
	ref.Namespace = cmp.Or(ref.Namespace, namespace)
	if ref.Namespace == namespace && Everyday(ref.APIVersion, ref.Kind) {
		return true
	}
	return allowedIn(installs, "", ref, namespace)
}

// MayLookUp reports whether the chart of a release in namespace may read the object, or,
// without a name, list the kind, by module(lookup = […]); without a namespace everywhere.
func MayLookUp(lookup []Grant, ref effect.Ref, namespaced bool, namespace string) bool {
	verb := "get"
	if ref.Name == "" {
		verb = "list"
	}
	switch {
	case !namespaced:
		ref.Namespace = namespace
	case ref.Namespace == "":
		ref.Namespace = "*"
	}
	return allowedIn(lookup, verb, ref, namespace)
}

func allowedIn(grants []Grant, verb string, ref effect.Ref, namespace string) bool {
	for i := range grants {
		g := &grants[i]
		named := g.Names == nil || ref.Name != "" && contains(g.Names, ref.Name)
		if named && g.covers(ref, true, namespace) && (verb == "" || contains(g.Verbs, verb)) {
			return true
		}
	}
	return false
}

// InstallLine is what allows a release in namespace to hold the object, for
// module(installs = […]).
func InstallLine(ref effect.Ref, namespace string) string { return grantLine(ref, namespace, "") }

// LookupLine is what allows a chart of a release in namespace to look up the object, for
// module(lookup = […]).
func LookupLine(ref effect.Ref, namespaced bool, namespace string) string {
	more := fmt.Sprintf(", names = [%q]", ref.Name)
	if ref.Name == "" {
		more = `, verbs = ["list"]`
	}
	switch {
	case !namespaced:
		ref.Namespace = ""
	case ref.Name == "" && ref.Namespace == "":
		ref.Namespace = "*"
	}
	return grantLine(ref, namespace, more)
}

// grantLine is a grant for objects like ref; namespace is where it holds without saying so.
func grantLine(ref effect.Ref, namespace, more string) string {
	line := fmt.Sprintf("grant(%q, %q%s", ref.APIVersion, ref.Kind, more)
	if ref.Namespace != "" && ref.Namespace != namespace {
		line += fmt.Sprintf(", namespaces = [%q]", ref.Namespace)
	}
	return line + ")"
}
