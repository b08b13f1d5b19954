package migrate

import (
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// builtinKinds are kinds of Kubernetes with their API version, plural and short names: a
// config may leave the version out, and take any of the names.
func builtinKinds() string {
	return `
v1 ConfigMap configmaps cm
v1 Endpoints endpoints ep
v1 Event events ev
v1 LimitRange limitranges limits
v1 Namespace namespaces ns
v1 Node nodes no
v1 PersistentVolume persistentvolumes pv
v1 PersistentVolumeClaim persistentvolumeclaims pvc
v1 Pod pods po
v1 ReplicationController replicationcontrollers rc
v1 ResourceQuota resourcequotas quota
v1 Secret secrets secret
v1 Service services svc
v1 ServiceAccount serviceaccounts sa
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions crd crds
apiregistration.k8s.io/v1 APIService apiservices
apps/v1 DaemonSet daemonsets ds
apps/v1 Deployment deployments deploy
apps/v1 ReplicaSet replicasets rs
apps/v1 StatefulSet statefulsets sts
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers hpa
batch/v1 CronJob cronjobs cj
batch/v1 Job jobs
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests csr
coordination.k8s.io/v1 Lease leases
discovery.k8s.io/v1 EndpointSlice endpointslices
networking.k8s.io/v1 Ingress ingresses ing
networking.k8s.io/v1 IngressClass ingressclasses
networking.k8s.io/v1 NetworkPolicy networkpolicies netpol
policy/v1 PodDisruptionBudget poddisruptionbudgets pdb
rbac.authorization.k8s.io/v1 ClusterRole clusterroles
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings
rbac.authorization.k8s.io/v1 Role roles
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
scheduling.k8s.io/v1 PriorityClass priorityclasses pc
storage.k8s.io/v1 CSIDriver csidrivers
storage.k8s.io/v1 CSINode csinodes
storage.k8s.io/v1 StorageClass storageclasses sc
storage.k8s.io/v1 VolumeAttachment volumeattachments
`
}

// certainty says how sure an API version and a kind are.
type certainty int

const (
	guessed certainty = iota // one is missing, or is another name of the kind
	spelled                  // as the old config has it, which may be another spelling
	known
)

// resolveKind returns the API version and the kind as manifests have them.
func resolveKind(apiVersion, kind string, custom []customKind) (version, name string, how certainty) {
	lower := strings.ToLower(kind)
	for _, k := range custom {
		if !slices.Contains(k.names, lower) {
			continue
		}
		if apiVersion == "" {
			return k.group + "/" + k.version, k.kind, known
		}
		if effect.GroupOf(apiVersion) == k.group {
			return apiVersion, k.kind, known
		}
	}
	for line := range strings.Lines(builtinKinds()) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		for _, name := range fields[1:] {
			if lower != strings.ToLower(name) {
				continue
			}
			if apiVersion == "" {
				return fields[0], fields[1], known
			}
			if effect.GroupOf(apiVersion) == effect.GroupOf(fields[0]) || builtinGroup(apiVersion) {
				return apiVersion, fields[1], known
			}
		}
	}
	switch {
	case apiVersion == "" || kind == "":
		return "example.com/v1", kind, guessed
	case lower == kind: // a plural or short name: a kind begins with a capital
		return apiVersion, kind, guessed
	}
	return apiVersion, kind, spelled
}

func builtinGroup(apiVersion string) bool {
	g := effect.GroupOf(apiVersion)
	return !strings.Contains(g, ".") || strings.HasSuffix(g, ".k8s.io")
}
