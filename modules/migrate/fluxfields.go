package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

// fluxField is what becomes of a field; without a text other code says it.
type fluxField struct {
	fate Fate
	text string
}

const logins = "logins and certificates are those of starling fetch and of the Pod (docs/charts.md)"

// sourceFields are those of HelmRepositories and OCIRepositories.
var sourceFields = map[string]fluxField{
	"spec.url": {}, "spec.type": {}, "spec.ref.tag": {}, "spec.ref.semver": {},
	"spec.interval":           {Done, "nobody asks the repository again: starling fetch --update does when it is called"},
	"spec.timeout":            {Changed, "starling fetch --timeout is for all archives together"},
	"spec.provider":           {Left, logins},
	"spec.secretRef":          {Left, logins},
	"spec.certSecretRef":      {Left, logins},
	"spec.proxySecretRef":     {Left, "starling fetch goes by HTTPS_PROXY of its environment"},
	"spec.serviceAccountName": {Left, logins},
	"spec.passCredentials":    {Left, "no login is sent to another host"},
	"spec.insecure":           {Left, "registries need TLS"},
	"spec.suspend":            {Changed, "a version changes when starling fetch --update is called"},
	"spec.accessFrom":         {Done, "no other namespace reads from this source"},
	"spec.ref.digest":         {Left, "this is the digest of a manifest; starling.lock keeps that of the archive, and module(digest = …) fixes it"},
	"spec.ref.semverFilter":   {Left, "a range of versions alone chooses the version"},
	"spec.layerSelector":      {Done, "the layer of a Helm chart is taken"},
	"spec.ignore":             {Left, "the archive is taken as it is"},
	"spec.verify":             {Left, "signatures are not checked; starling.lock keeps the digest of the archive"},
}

// chartFields are those of HelmCharts, and of spec.chart of a HelmRelease.
var chartFields = map[string]fluxField{
	"spec.chart": {}, "spec.version": {}, "spec.sourceRef": {},
	"spec.interval":                 sourceFields["spec.interval"],
	"spec.suspend":                  sourceFields["spec.suspend"],
	"spec.reconcileStrategy":        {Changed, "a chart in the tree counts as it is, without a new version"},
	"spec.valuesFiles":              {Left, "other files with values of the chart: write what they hold into values.yaml"},
	"spec.valuesFile":               {Left, "another file with values of the chart: write what it holds into values.yaml"},
	"spec.ignoreMissingValuesFiles": {Left, "other files with values of the chart are not read"},
	"spec.verify":                   sourceFields["spec.verify"],
}

const (
	noHooks     = "hooks of the chart run"
	noForce     = "objects are applied, and made anew by nobody but people"
	retries     = "a release that fails is tried again after a time that grows, up to five minutes, without an end; nothing is uninstalled"
	remediation = "with on_failure = \"rollback\" a release goes back after one try, and tries again once something changes; nothing is uninstalled"
	crds        = "crds/ is applied with each release, new versions too; definitions of others are taken over by adopt"
	takesTime   = "module(timeout = …) is for each work on the release"
	waitForJobs = "module(wait = …) says whether objects are waited for, whatever their kind"
	noSchema    = "the schema of the chart's values is checked"
	noOpenAPI   = "the API server alone checks objects"
	applies     = "there is one way to write objects"
	keepsAll    = "objects that a failed upgrade has made stay for its next try"
)

// releaseFields are those of a HelmRelease. An entry of spec.install counts for spec.upgrade where that has none.
var releaseFields = map[string]fluxField{
	"spec.releaseName": {}, "spec.targetNamespace": {}, "spec.storageNamespace": {}, "spec.values": {}, "spec.valuesFrom": {},
	"spec.chartRef": {}, "spec.dependsOn": {}, "spec.driftDetection.mode": {}, "spec.driftDetection.ignore": {}, "spec.timeout": {},
	"spec.suspend": {}, "spec.install.disableWait": {}, "spec.install.crds": {},
	"spec.commonMetadata.labels": {},

	"spec.interval":                         {Done, "no time is needed: watches tell of changes at once"},
	"spec.persistentClient":                 {Done, "there is one client"},
	"spec.chart.metadata":                   {Done, "there is no object of the chart"},
	"spec.kubeConfig":                       {Left, "starling run --kubeconfig is for all modules: give another cluster its own Starling"},
	"spec.serviceAccountName":               {Left, "all modules act with the rights of Starling; module(installs = …) bounds what the chart holds"},
	"spec.maxHistory":                       {Changed, "starling run --history-max is for all releases"},
	"spec.postRenderers":                    {Left, "nothing changes what a chart renders to: module(labels = …) adds labels; else put the chart into the tree and change it there"},
	"spec.commonMetadata.annotations":       {Left, "module(labels = …) adds labels; nothing adds annotations"},
	"spec.waitStrategy":                     {Left, "waiting goes by the status of objects"},
	"spec.healthCheckExprs":                 {Left, "def readiness() in module.star goes by values that a hook finds out"},
	"spec.test.enable":                      {},
	"spec.test.timeout":                     {Left, takesTime},
	"spec.test.ignoreFailures":              {Left, "a test that fails lets the revision fail: test = True is left out"},
	"spec.test.filters":                     {Left, "with test = True all tests of the chart run"},
	"spec.rollback":                         {Left, "a rollback is asked for with helm rollback"},
	"spec.uninstall":                        {Left, "an uninstall runs the hooks of the chart and keeps no history; starling detach leaves the objects"},
	"spec.install.createNamespace":          {Done, "a namespace is made when it is missing"},
	"spec.install.timeout":                  {Left, takesTime},
	"spec.install.remediation":              {Changed, retries},
	"spec.upgrade.remediation":              {Changed, remediation},
	"spec.install.strategy":                 {Left, retries},
	"spec.install.skipCRDs":                 {Left, crds},
	"spec.install.disableHooks":             {Left, noHooks},
	"spec.install.disableWaitForJobs":       {Left, waitForJobs},
	"spec.install.disableSchemaValidation":  {Left, noSchema},
	"spec.install.disableOpenAPIValidation": {Done, noOpenAPI},
	"spec.install.disableTakeOwnership":     {Changed, "adopt = True takes over what nobody else has"},
	"spec.install.serverSideApply":          {Done, applies},
	"spec.install.replace":                  {Done, "a name that is free again is used again"},
	"spec.upgrade.force":                    {Left, noForce},
	"spec.upgrade.preserveValues":           {Left, "the values of the tree are all there are: write those of the release (helm get values) into values.yaml"},
	"spec.upgrade.cleanupOnFail":            {Left, keepsAll},
}

// unlike are fields without which the release would not be what it was: its module waits.
var unlike = []struct {
	path []string
	what string
}{
	{[]string{"kubeConfig"}, "a Starling in the other cluster"},
	{[]string{"postRenderers"}, "the patches of postRenderers"},
	{[]string{"upgrade", "preserveValues"}, "the values of the release"},
	{[]string{"chart", "spec", "valuesFiles"}, "the other files with values"},
	{[]string{"chart", "spec", "valuesFile"}, "the other file with values"},
}

// table notes what becomes of the fields below one of an object, each with its line, and names the fields that are not
// in the table.
func (n *notes) table(node *yaml.Node, path string, fields map[string]fluxField, what string) {
	at := field(node, strings.Split(path, ".")...)
	if at == nil || at.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		key, value := at.Content[i], followed(at.Content[i+1])
		p := path + "." + key.Value
		f, known := fields[p]
		if !known {
			f, known = fields[strings.Replace(p, "spec.upgrade.", "spec.install.", 1)]
		}
		switch below := value.Kind == yaml.MappingNode && !known; {
		case known && (f.text == "" || value.Value == "false"): // false is the default of all these
		case known:
			n.add(f.fate, "line %d: %s%s: %s", key.Line, what, p, f.text)
		case below && hasBelow(fields, p):
			n.table(node, p, fields, what)
		default:
			n.add(Left, "line %d: %s%s: starling new does not know this field", key.Line, what, p)
		}
	}
}

func hasBelow(fields map[string]fluxField, path string) bool {
	for p := range fields {
		if strings.HasPrefix(p, path+".") {
			return true
		}
	}
	return false
}

// fields brings over what a HelmRelease says besides its chart and its values.
func (f *flux) fields(m *module, n *notes, o *fluxObject, spec *yaml.Node) {
	all := maps.Clone(releaseFields)
	for path, fate := range chartFields {
		all["spec.chart."+path] = fate
	}
	first := len(n.all)
	n.table(o.node, "spec", all, "")
	for _, note := range n.all[first:] { // people see them where they look first
		if note.Fate == Left {
			m.say("# TODO: %s", message.Clean(message.Cut(message.Line(note.Text), 400)))
		}
	}
	if meta := field(o.node, "metadata"); field(meta, "labels") != nil || field(meta, "annotations") != nil {
		n.add(Changed, "line %d: labels and annotations of the HelmRelease itself have no place: there is no such object", o.node.Line)
	}
	if text(spec, "suspend") == "true" {
		n.add(Changed, "line %d: spec.suspend: the module waits; later %sPaused in the user's ConfigMap pauses it", field(spec, "suspend").Line, tree.Key(m.name))
		m.lacks("the HelmRelease was suspended")
	}
	for _, part := range unlike {
		if is := field(spec, part.path...); is != nil && is.Value != "false" {
			m.lacks(part.what)
		}
	}
	switch install, upgrade := text(spec, "install", "disableWait") == "true", text(spec, "upgrade", "disableWait") == "true"; {
	case install && upgrade:
	case install != upgrade:
		n.add(Changed, "line %d: spec.install.disableWait and spec.upgrade.disableWait differ: module(wait = True) is for both", o.node.Line)
		fallthrough
	default:
		m.say("wait = True,")
	}
	if text(spec, "test", "enable") == "true" && text(spec, "test", "ignoreFailures") != "true" {
		m.say("test = True,")
	}
	tries, last := text(spec, "upgrade", "remediation", "retries"), text(spec, "upgrade", "remediation", "remediateLastFailure")
	if (tries != "" && tries != "0" || last == "true") && text(spec, "upgrade", "remediation", "strategy") != "uninstall" {
		m.say(`on_failure = "rollback",`)
	}
	for _, when := range []string{"install", "upgrade"} {
		if at := field(spec, when, "crds"); at != nil && at.Value != "CreateReplace" {
			n.add(Changed, "line %d: spec.%s.crds: %s: %s", at.Line, when, at.Value, crds)
		}
	}
	f.timeout(m, n, field(spec, "timeout"))
	f.requires(m, n, o, field(spec, "dependsOn"))
	f.drift(m, n, field(spec, "driftDetection"), o.node.Line)
	if labels := field(spec, "commonMetadata", "labels"); labels != nil {
		var all map[string]string
		if labels.Decode(&all) != nil {
			m.todo(n, labels, "labels = {…}: spec.commonMetadata.labels is no map of texts")
		} else {
			m.say("labels = %s,", starlark(all))
		}
	}
}

// maxTimeout is that of module().
const maxTimeout = 2 * time.Hour

func (f *flux) timeout(m *module, n *notes, at *yaml.Node) {
	if at == nil {
		return
	}
	switch d, err := time.ParseDuration(at.Value); {
	case err != nil || d <= 0:
		m.todo(n, at, "timeout = …: spec.timeout is no duration")
	case d > maxTimeout:
		n.add(Changed, "line %d: spec.timeout: %s is more than 2h, the limit here", at.Line, d)
		m.say("timeout = \"2h\",")
	default:
		m.say("timeout = %s,", starlark(at.Value))
	}
}

// requires brings dependsOn over: Flux waits, as requires does, until the other one is ready.
func (f *flux) requires(m *module, n *notes, o *fluxObject, at *yaml.Node) {
	if at == nil {
		return
	}
	var names []string
	for _, ref := range at.Content {
		ref = followed(ref)
		other := fluxObject{namespace: text(ref, "namespace"), name: text(ref, "name")}
		if other.namespace == "" {
			other.namespace = o.namespace
		}
		if expr := field(ref, "readyExpr"); expr != nil {
			n.add(Left, "line %d: spec.dependsOn: readyExpr: let def readiness() of the other module say when it is ready", expr.Line)
		}
		if of := f.modules[other.String()]; of != nil {
			names = append(names, of.name)
			continue
		}
		m.todo(n, ref, "requires = [%s]: HelmRelease %s is not in the stream", starlark(other.name), &other)
	}
	if slices.Sort(names); len(names) > 0 {
		m.requires = slices.Compact(names)
	}
}

// drift brings driftDetection over.
func (f *flux) drift(m *module, n *notes, at *yaml.Node, line int) {
	switch mode := text(at, "mode"); mode {
	case "enabled":
	case "warn":
		m.say("drift = \"report\",")
	case "disabled", "":
		if at != nil {
			line = at.Line
		}
		n.add(Changed, "line %d: Flux puts nothing right here (spec.driftDetection.mode): drift = \"report\" shows what differs, \"repair\" puts it right", line)
		m.say("drift = \"report\",  # \"repair\" puts changes of others right, which Flux did not")
	default:
		m.todo(n, at, "drift = …: spec.driftDetection.mode %s is none", mode)
	}
	rules := field(at, "ignore")
	if rules == nil {
		return
	}
	var out []string
	for _, rule := range rules.Content {
		rule = followed(rule)
		objects, err := ignoredObjects(field(rule, "target"))
		paths := field(rule, "paths")
		if err == nil && (paths == nil || len(paths.Content) == 0) {
			err = fmt.Errorf("it names no paths")
		}
		if err != nil {
			m.todo(n, rule, "ignore = […]: spec.driftDetection.ignore: %v", err)
			continue
		}
		for _, p := range paths.Content {
			ignore, err := ignored(objects, followed(p).Value)
			if err != nil {
				m.todo(n, p, "ignore = […]: spec.driftDetection.ignore: %v", err)
				continue
			}
			out = append(out, ignore)
		}
	}
	if len(out) > 0 {
		m.say("ignore = %s,", starlark(out))
	}
}

// literalName is a pattern of Flux that can mean one name alone.
var literalName = regexp.MustCompile(`^\^?([A-Za-z0-9.-]+)\$?$`)

// ignoredObjects writes the target of a rule as the first half of an entry of ignore; nil is all objects.
func ignoredObjects(target *yaml.Node) (string, error) {
	for _, key := range []string{"labelSelector", "annotationSelector", "namespace"} {
		if field(target, key) != nil {
			return "", fmt.Errorf("target.%s: an entry of ignore selects by kind and name", key)
		}
	}
	kind, group, name := text(target, "kind"), text(target, "group"), text(target, "name")
	for _, pattern := range []*string{&kind, &group, &name} {
		if *pattern == "" {
			continue
		}
		found := literalName.FindStringSubmatch(*pattern)
		if found == nil {
			return "", fmt.Errorf("target: %q is a pattern: write an entry of ignore for each object", *pattern)
		}
		*pattern = found[1]
	}
	switch {
	case kind == "" && group+name != "":
		return "", fmt.Errorf("target: it names no kind")
	case group != "":
		kind += "." + group
	}
	if name != "" {
		kind += "/" + name
	}
	return kind, nil
}

// ignored writes a JSON pointer as an entry of ignore.
func ignored(objects, pointer string) (string, error) {
	if pointer == "" || pointer == "/" {
		if objects == "" {
			return "", fmt.Errorf("it names all of all objects: module(drift = \"ignore\") does that")
		}
		return objects, nil
	}
	var path owned.Path
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if step == "" || strings.Trim(step, "0123456789-") == "" {
			return "", fmt.Errorf("%q names an element of a list by its place: write its name, as in spec.containers[name=web].image", pointer)
		}
		path = append(path, owned.Step{Field: step})
	}
	entry := strings.TrimSpace(objects + " " + path.String())
	if _, err := owned.ParseIgnore(entry); err != nil {
		return "", err
	}
	return entry, nil
}
