package faults

// tree is a hook that writes all inputs into one object, and into the values of a chart, and a controller
// that makes a Secret, once, and a ConfigMap of each Shop.
var tree = map[string]string{
	"mirror/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", verbs = ["apply"], names = ["out"])])
`,
	"mirror/Chart.yaml":  "{apiVersion: v2, name: mirror, version: 0.1.0}\n",
	"mirror/values.yaml": "text: none\n",
	"mirror/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: {{ .Release.Namespace }}}\n" +
		"data:\n  text: {{ .Values.text | quote }}\n",
	"mirror/hooks/mirror.star": `
def mirror(ctx):
    data = {}
    for line in ctx.snapshots["inputs"]:
        name, _, text = line.partition("=")
        data[name] = text
    values.set("text", ",".join(ctx.snapshots["inputs"]))
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out", "namespace": "$NS"}, "data": data})

hook(mirror, on = [startup(), k8s.watch("v1", "ConfigMap", name = "inputs", namespaces = ["$NS"], labels = {"input": "$NS"},
                                        filter = lambda o: o.metadata.name + "=" + o.data["text"])],
     retry = retry(min = "200ms", max = "5s"))
`,
	"shops/module.star": `module(enabled = True)
crd("$NS.example.net/v1", "Shop", {"n": field("integer", default = 1)})
`,
	"shops/hooks/shop.star": `
def shop(ctx, o):
    name = o.metadata.name

    def child(kind, suffix, **fields):
        return dict({"apiVersion": "v1", "kind": kind, "metadata": {"name": name + suffix, "labels": {"shop": name}}}, **fields)

    return [
        part(child("Secret", "-key"), name = "key", fill = {"data.key": generate.password()}),
        part(child("ConfigMap", "-n", data = {"n": str(o.spec.n)}), name = "n", after = ["key"]),
    ]

controller("shop", k8s.watch("$NS.example.net/v1", "Shop", namespaces = ["$NS"]), shop,
           owns = [owns("v1", "Secret"), owns("v1", "ConfigMap")])
`,
}
