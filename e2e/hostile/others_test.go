package hostile

// others are modules that reach for what is not theirs: Starling's own objects.
var others = []attack{
	granted("reads-kept", `k8s.get("v1", "Secret", "starling-kept-healthy")`, ownObject),
	granted("reads-key", `k8s.secret("starling-records", "key")`, ownObject),
	granted("switches-off", `k8s.patch("v1", "ConfigMap", "starling", merge = {"data": {"healthyEnabled": "false"}})`, ownObject),
	granted("takes-token", `k8s.apply({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "starling"}}})`, ownObject),
	granted("takes-lease", `k8s.patch("coordination.k8s.io/v1", "Lease", "starling", merge = {"spec": {"holderIdentity": "me"}})`, ownObject),
}

const ownObject = "it belongs to Starling itself, and no grant covers that"

// granted returns an attack by one hook whose module has all verbs where it is.
func granted(name, body string, says ...string) attack {
	a := hook(name, body, says...)
	a.files["module.star"] = `module(enabled = True, grants = [
    grant("v1", "ConfigMap", verbs = ["*"]),
    grant("v1", "Secret", verbs = ["*"]),
    grant("coordination.k8s.io/v1", "Lease", verbs = ["*"]),
])
`
	return a
}
