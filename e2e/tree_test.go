package e2e

import "maps"

// mirror is a module whose chart renders a ConfigMap, named like the module, with one entry,
// the value `text`, which is "plain" unless someone sets it.
func mirror(name, moduleStar string) map[string]string {
	return map[string]string{
		name + "/module.star": moduleStar,
		name + "/Chart.yaml":  "{apiVersion: v2, name: " + name + ", version: 0.1.0}\n",
		name + "/values.yaml": "text: plain\n",
		name + "/openapi/config-values.yaml": "type: object\nproperties:\n  text: {type: string, maxLength: 80}\n" +
			"  mode: {type: string}\n",
		name + "/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: " + name + ", namespace: {{ .Release.Namespace }}}\n" +
			"data:\n  text: {{ .Values.text | quote }}\n",
	}
}

// on is a module that is on, and may have the hooks of guard.
const on = "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"mutate\"])])\n"

// probe is a module of one hook that watches the ConfigMaps of fixture.touch: once
// probeHook has run for one of them, a watch event has gone all its way.
func probe() map[string]string {
	return map[string]string{
		"probe/module.star": on,
		"probe/hooks/probe.star": `
def probe(ctx):
    log.info("probed", texts = ctx.snapshots["cms"])

hook(probe, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"},
                            filter = lambda o: o.get("data.text", ""))])
`,
	}
}

const probeHook = "probe/hooks/probe.star:probe"

// trees joins module trees.
func trees(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, t := range all {
		maps.Copy(out, t)
	}
	return out
}
