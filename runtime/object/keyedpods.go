package object

// The lists with keys of Kubernetes' own kinds, by group and kind: those that people apply, so none of a status. A
// test holds them to the schema of server-side apply.
var (
	everyKind = []keyed{{at: "metadata.finalizers", same: once}, {at: "metadata.ownerReferences", keys: []string{"uid"}, same: once}}
	byName    = []string{"name"}
	container = []keyed{
		{at: "env", keys: byName, same: lastCounts},
		{at: "ports", keys: []string{"containerPort", "protocol=TCP"}, same: samePort},
		{at: "volumeMounts", keys: []string{"mountPath"}, same: refuse, in: sets("bindMountOptions")},
		{at: "volumeDevices", keys: []string{"devicePath"}, same: refuse},
		{at: "resources.claims", keys: byName, same: refuse},
		{at: "restartPolicyRules", in: sets("exitCodes.values")},
	}
	podSpec = []keyed{
		{at: "containers", keys: byName, same: refuse, in: container},
		{at: "initContainers", keys: byName, same: refuse, in: container},
		{at: "ephemeralContainers", keys: byName, same: refuse, in: container},
		{at: "volumes", keys: byName, same: refuse},
		{at: "imagePullSecrets", keys: []string{"name="}, same: once},
		{at: "hostAliases", keys: []string{"ip"}, same: sameHost},
		{at: "topologySpreadConstraints", keys: []string{"topologyKey", "whenUnsatisfiable"}, same: refuse},
		{at: "resourceClaims", keys: byName, same: refuse},
		{at: "schedulingGates", keys: byName, same: refuse},
		{at: "evictionResponders", keys: byName, same: refuse},
		{at: "resources.claims", keys: byName, same: refuse},
	}
	podTemplate = below("spec.template.spec", podSpec...)
	webhooks    = []keyed{{at: "webhooks", keys: byName, same: refuse, in: []keyed{{at: "matchConditions", keys: byName, same: refuse}}}}
	conditions  = keyed{at: "spec.matchConditions", keys: byName, same: refuse}
	podGroups   = below("spec", keyed{at: "podGroupTemplates", keys: byName, same: refuse, in: []keyed{{at: "resourceClaims", keys: byName, same: refuse}}},
		keyed{at: "compositePodGroupTemplates", keys: byName, same: refuse})
	byKind = map[string][]keyed{
		"/Pod":                           below("spec", podSpec...),
		"/PodTemplate":                   below("template.spec", podSpec...),
		"/ReplicationController":         podTemplate,
		"apps/Deployment":                podTemplate,
		"apps/ReplicaSet":                podTemplate,
		"apps/DaemonSet":                 podTemplate,
		"apps/StatefulSet":               podTemplate,
		"batch/Job":                      job("spec"),
		"batch/CronJob":                  job("spec.jobTemplate.spec"),
		"/Service":                       {{at: "spec.ports", keys: []string{"port", "protocol=TCP"}, same: refuse}},
		"/ServiceAccount":                {{at: "secrets", keys: byName, same: once}},
		"/Node":                          sets("spec.podCIDRs", "spec.podPreemptionPolicy.disableResizePreemption"),
		"storage.k8s.io/CSINode":         {{at: "spec.drivers", keys: byName, same: refuse}},
		"storage.k8s.io/CSIDriver":       sets("spec.volumeLifecycleModes"),
		"resource.k8s.io/ResourceSlice":  sets("spec.skipNodeOperations"),
		"discovery.k8s.io/EndpointSlice": {{at: "endpoints", in: sets("addresses")}},
		"scheduling.k8s.io/Workload":     podGroups,
		"scheduling.k8s.io/PodGroup":     {{at: "spec.resourceClaims", keys: byName, same: refuse}},
		"admissionregistration.k8s.io/MutatingWebhookConfiguration":     webhooks,
		"admissionregistration.k8s.io/ValidatingWebhookConfiguration":   webhooks,
		"admissionregistration.k8s.io/MutatingAdmissionPolicy":          {conditions},
		"admissionregistration.k8s.io/ValidatingAdmissionPolicy":        {conditions, {at: "spec.variables", keys: byName, same: refuse}},
		"admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": sets("spec.validationActions"),
		"flowcontrol.apiserver.k8s.io/FlowSchema": {{at: "spec.rules", in: []keyed{
			{at: "nonResourceRules", in: sets("verbs", "nonResourceURLs")},
			{at: "resourceRules", in: sets("verbs", "apiGroups", "resources", "namespaces")},
		}}},
	}
)

// below are lists in the map at a place.
func below(place string, lists ...keyed) (out []keyed) {
	for _, l := range lists {
		l.at = place + "." + l.at
		out = append(out, l)
	}
	return out
}

func sets(names ...string) (out []keyed) {
	for _, name := range names {
		out = append(out, keyed{at: name, same: once})
	}
	return out
}

// job are the lists of a Job whose spec is at a place.
func job(spec string) []keyed {
	return append(below(spec+".template.spec", podSpec...),
		keyed{at: spec + ".podFailurePolicy.rules", in: sets("onExitCodes.values")},
		keyed{at: spec + ".scheduling.resourceClaims", keys: byName, same: refuse})
}
