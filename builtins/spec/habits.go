package spec

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// elsewhereParams are arguments as shell-operator and client libraries call them, the parameter that is meant, and
// how it is written.
var elsewhereParams = map[string][2]string{
	"onstartup":                    {"on", "on = [startup(order = 10)]"},
	"kubernetes":                   {"on", `on = [k8s.watch("v1", "Pod")]`},
	"schedule":                     {"on", `on = [schedule("*/5 * * * *")]`},
	"schedules":                    {"on", `on = [schedule("*/5 * * * *")]`},
	"trigger":                      {"on", `on = [startup(), schedule("*/5 * * * *"), k8s.watch("v1", "Pod")]`},
	"triggers":                     {"on", `on = [startup(), schedule("*/5 * * * *"), k8s.watch("v1", "Pod")]`},
	"watch":                        {"on", `on = [k8s.watch("v1", "Pod")]`},
	"beforehelm":                   {"on", "on = [before_helm(order = 10)]"},
	"afterhelm":                    {"on", "on = [after_helm(order = 10)]"},
	"afterdeletehelm":              {"on", "on = [after_delete(order = 10)]"},
	"executehookonevent":           {"events", `events = ["added"]`},
	"watchevent":                   {"events", `events = ["added"]`},
	"executehookonsynchronization": {"sync", "sync = False"},
	"waitforsynchronization":       {"gate", "gate = False"},
	"jqfilter":                     {"filter", `filter = ".metadata.name", or filter = lambda o: o.metadata.name`},
	"jq":                           {"filter", `filter = ".metadata.name", or filter = lambda o: o.metadata.name`},
	"type":                         {"fields", `fields = "type=kubernetes.io/tls"`},
	"labelselector":                {"labels", `labels = {"app": "web"}`},
	"selector":                     {"labels", `labels = {"app": "web"}`},
	"matchlabels":                  {"labels", `labels = {"app": "web"}`},
	"fieldselector":                {"fields", `fields = {"status.phase": "Running"}`},
	"nameselector":                 {"object_names", `object_names = ["web"]`},
	"names":                        {"object_names", `object_names = ["web"]`},
	"namespaceselector":            {"namespaces", `namespaces = ["web"]`},
	"namespace":                    {"namespaces", `namespaces = ["web"]`},
	"keepfullobjectsinmemory":      {"keep", `keep = "object"`},
	"includesnapshotsfrom":         {"on", "a hook has the snapshots of all its watches: leave it out"},
	"settings":                     {"min_interval", `min_interval = "5s"`},
	"crontab":                      {"cron", `cron = "*/5 * * * *"`},
	"dependson":                    {"requires", `requires = ["db"]`},
	"depends_on":                   {"requires", `requires = ["db"]`},
}

// ParamHint says how an argument is given that a builtin does not take; "" when nobody knows what is meant.
func ParamHint(builtin, name string, takes []string) string {
	if builtin == "module" && name == "name" {
		return "the folder has the name: leave it out"
	}
	e, ok := elsewhereParams[strings.ToLower(name)]
	for _, p := range takes {
		switch {
		case !ok || p != e[0]:
		case strings.HasPrefix(e[1], e[0]+" = "):
			return "write " + e[1]
		default:
			return e[1]
		}
	}
	return message.DidYouMean(name, takes, "")
}

// kindsByResource are everyday kinds, by what kubectl calls them.
var kindsByResource = map[string][2]string{
	"po": {"v1", "Pod"}, "pods": {"v1", "Pod"}, "no": {"v1", "Node"}, "nodes": {"v1", "Node"},
	"ns": {"v1", "Namespace"}, "namespaces": {"v1", "Namespace"}, "svc": {"v1", "Service"}, "services": {"v1", "Service"},
	"cm": {"v1", "ConfigMap"}, "configmaps": {"v1", "ConfigMap"}, "secrets": {"v1", "Secret"}, "ep": {"v1", "Endpoints"},
	"sa": {"v1", "ServiceAccount"}, "serviceaccounts": {"v1", "ServiceAccount"}, "events": {"v1", "Event"}, "ev": {"v1", "Event"},
	"pvc": {"v1", "PersistentVolumeClaim"}, "persistentvolumeclaims": {"v1", "PersistentVolumeClaim"},
	"pv": {"v1", "PersistentVolume"}, "persistentvolumes": {"v1", "PersistentVolume"},
	"deploy": {"apps/v1", "Deployment"}, "deployments": {"apps/v1", "Deployment"},
	"ds": {"apps/v1", "DaemonSet"}, "daemonsets": {"apps/v1", "DaemonSet"},
	"sts": {"apps/v1", "StatefulSet"}, "statefulsets": {"apps/v1", "StatefulSet"},
	"rs": {"apps/v1", "ReplicaSet"}, "replicasets": {"apps/v1", "ReplicaSet"},
	"jobs": {"batch/v1", "Job"}, "cj": {"batch/v1", "CronJob"}, "cronjobs": {"batch/v1", "CronJob"},
	"ing": {"networking.k8s.io/v1", "Ingress"}, "ingresses": {"networking.k8s.io/v1", "Ingress"},
	"netpol": {"networking.k8s.io/v1", "NetworkPolicy"}, "networkpolicies": {"networking.k8s.io/v1", "NetworkPolicy"},
	"hpa": {"autoscaling/v2", "HorizontalPodAutoscaler"}, "horizontalpodautoscalers": {"autoscaling/v2", "HorizontalPodAutoscaler"},
	"pdb": {"policy/v1", "PodDisruptionBudget"}, "poddisruptionbudgets": {"policy/v1", "PodDisruptionBudget"},
	"crd": {"apiextensions.k8s.io/v1", "CustomResourceDefinition"}, "customresourcedefinitions": {"apiextensions.k8s.io/v1", "CustomResourceDefinition"},
	"sc": {"storage.k8s.io/v1", "StorageClass"}, "storageclasses": {"storage.k8s.io/v1", "StorageClass"},
	"quota": {"v1", "ResourceQuota"}, "resourcequotas": {"v1", "ResourceQuota"}, "limitranges": {"v1", "LimitRange"},
	"endpoints": {"v1", "Endpoints"}, "endpointslices": {"discovery.k8s.io/v1", "EndpointSlice"},
	"roles": {"rbac.authorization.k8s.io/v1", "Role"}, "rolebindings": {"rbac.authorization.k8s.io/v1", "RoleBinding"},
	"clusterroles": {"rbac.authorization.k8s.io/v1", "ClusterRole"}, "clusterrolebindings": {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"},
}

// KindNamed is the everyday kind that is called name, in any of its forms.
func KindNamed(name string) (apiVersion, kind string) {
	low := strings.ToLower(name)
	if k, ok := kindsByResource[low]; ok {
		return k[0], k[1]
	}
	for _, k := range kindsByResource {
		if strings.ToLower(k[1]) == low {
			return k[0], k[1]
		}
	}
	return "", ""
}

// KindExample is the kind that is meant by what is none, as manifests have it.
func KindExample(name string) string {
	if _, kind := KindNamed(name); kind != "" {
		return kind
	}
	return "ConfigMap"
}

// IsKind says of an api version that it is a kind in the wrong place, and how both are written.
func IsKind(apiVersion string) (hint string, ok bool) {
	if apiVersion == "" || apiVersion[0] < 'A' || apiVersion[0] > 'Z' || strings.Contains(apiVersion, "/") {
		return "", false
	}
	version, kind := KindNamed(apiVersion)
	if version == "" {
		version, kind = "example.org/v1", apiVersion
	}
	return fmt.Sprintf("the api version comes first: %q, %q", version, kind), true
}

// MissingHint says how a required argument is given, where first is the first text that was given; "" when its name says all.
func MissingHint(name, first string) string {
	switch name {
	case "failure_policy":
		return `write failure_policy = "ignore", which lets a request pass that nobody answers, or failure_policy = "fail"`
	case "kind":
		if hint, ok := IsKind(first); ok {
			return hint
		}
		if version, kind := KindNamed(first); version != "" {
			return fmt.Sprintf("the api version comes first: %q, %q", version, kind)
		}
		if i := strings.LastIndexByte(first, '/'); i > 0 && i+1 < len(first) && first[i+1] >= 'A' && first[i+1] <= 'Z' {
			return fmt.Sprintf("api version and kind are two arguments: %q, %q", first[:i], first[i+1:])
		}
	}
	return ""
}

var (
	dayDuration = regexp.MustCompile(`^"(\d+)\s*(d|days?|w|weeks?)"$`)
	inWords     = regexp.MustCompile(`(?i)^"?(\d+)\s*(seconds?|secs?|minutes?|mins?|hours?|hrs?|m|h|s)"?$`)
)

// durationExample writes a duration as people of other tools give it as it is written here.
func durationExample(text string) string {
	if m := dayDuration.FindStringSubmatch(text); m != nil {
		hours := 24
		if m[2][0] == 'w' {
			hours = 7 * 24
		}
		var n int
		if _, err := fmt.Sscan(m[1], &n); err == nil && n < 10000 {
			return fmt.Sprintf(`"%dh"`, n*hours)
		}
	}
	if m := inWords.FindStringSubmatch(text); m != nil {
		return `"` + m[1] + strings.ToLower(m[2][:1]) + `"`
	}
	return `"30s", "5m" or "1h30m"`
}

// PathHint says of a path of values that is written as in a template, or in jq, how it is written; "" for any other.
func PathHint(builtin, path string) string {
	if space, _, _ := strings.Cut(builtin, "."); space != "values" && space != "config" {
		return ""
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(path, "."), "Values.")
	if plain == path || plain == "" {
		return ""
	}
	return fmt.Sprintf("%q: a path begins with the name of a value; write %q", Clip(path), Clip(plain))
}
