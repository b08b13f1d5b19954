package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/message"
)

// The declarations of a module: module, grant, hook, retry, and the answers of
// enabled().

func declareSpecs() []Spec {
	return []Spec{
		{
			Name: "module", Phases: PhaseLoad, call: callModule,
			Doc: "Declares the module that this module.star belongs to. Called at most once; a folder without it is a module with all defaults. In global/module.star only grants, http and config may be given.",
			Params: []Param{
				{Name: "enabled", Type: TypeBool, Default: "False", Doc: "Whether the module is on when neither values nor config say so in `<camelName>Enabled`."},
				{Name: "weight", Type: TypeInt, Default: "None", Doc: "Order among modules, small first, 0 or more; default: the number that the folder's name begins with."},
				{Name: "after", Type: TypeStrings, Default: "[]", Doc: "Modules that are handled first, when they are on."},
				{Name: "requires", Type: TypeStrings, Default: "[]", Doc: "Modules without which this one is off, and on whose readiness it waits. \"nats|kafka\" is one of several, \"!legacy\" a module that must be off, and gone."},
				{Name: "on_requirement_lost", Type: TypeString, Default: `"keep"`, Doc: "The release of a module that is off because of requires stays as it is, \"keep\", or is taken away, \"uninstall\"."},
				{Name: "namespace", Type: TypeString, Default: "None", Doc: "Namespace of the release, made when missing, never deleted; default: the operator's. Of a module without a chart nothing makes it: it must be there."},
				{Name: "values_key", Type: TypeString, Default: "None", Doc: "Key under which the chart finds the module's values, and under which values.yaml of the module may have them; default: at the root."},
				{Name: "release", Type: TypeString, Default: "None", Doc: "Name of the Helm release; default: the module's name."},
				{Name: "adopt", Type: TypeBool, Default: "False", Doc: "Takes over a release of this name that was installed with helm, and objects of the chart and definitions of crds/ that are there already. If not, these are errors. Objects that a release, a controller or another instance still has are not taken over."},
				{Name: "wait", Type: TypeBool, Default: "False", Doc: "Whether a release waits until its objects are ready."},
				{Name: "test", Type: TypeBool, Default: "False", Doc: "Whether the hooks of `helm test` run once a revision is installed or upgraded, and its objects are ready, which test = True waits for. The revision fails when one of them fails."},
				{Name: "timeout", Type: TypeDuration, Default: `"10m"`, Doc: "How long one release action may take, at most 2h."},
				{Name: "on_failure", Type: TypeString, Default: `"retry"`, Doc: "A revision that fails is tried again, \"retry\", or the release goes back to its last revision that was deployed, \"rollback\", and the failed one is tried again once something changes."},
				{Name: "drift", Type: TypeString, Default: `"repair"`, Doc: "How changes of others in objects of the release are treated: \"repair\" puts them right, \"report\" shows them, \"ignore\" does not look for them, and gives the objects no label."},
				{Name: "ignore", Type: TypeStrings, Default: "[]", Doc: "Parts of the release that are left to others: a kind, \"Secret\", with its API group, \"Service.serving.knative.dev\", or of all; one object, \"Deployment/web\"; a field and all below it, \"spec.replicas\" or \"spec.template.spec.containers[name=web].image\"; or an object and a field, \"Deployment/web spec.replicas\". Upgrades leave them as they are, too, once they are there. Replicas that a HorizontalPodAutoscaler has written are left alone without it, until the chart says another number."},
				{Name: "grants", Type: TypeList, Default: "[]", Doc: "Objects that the hooks of the module may read and write besides those that they watch: a list of grant(…)."},
				{Name: "installs", Type: TypeList, Default: "[]", Doc: "Objects that the chart may hold besides the everyday kinds of Kubernetes in its own namespace: a list of grant(…) without verbs. Name roles, custom resources, objects without a namespace, and objects in another namespace here; else the release is refused before Helm sees it."},
				{Name: "lookup", Type: TypeList, Default: "[]", Doc: "Objects that the chart's templates may read with lookup: a list of grant(…), with the verbs get, list, or, without verbs, both. Any other lookup is an error."},
				{Name: "labels", Type: TypeDict, Default: "{}", Doc: "Labels on all that the module makes: objects of its release, definitions of crds/, objects that its hooks apply, create or want as parts, configurations of its webhooks. A label of that key that an object has itself stays."},
				{Name: "crds", Type: TypeString, Default: `"keep"`, Doc: "An update of a definition by which objects that are there would lose fields, or be refused, is refused itself, \"keep\", or takes place, \"force\"."},
				{Name: "crd_filter", Type: TypeStrings, Default: "[]", Doc: "Files of crds/ that are left out, by their names: \"old-*.yaml\", where * is any text. Names that begin with doc- or _, and kustomization.yaml, are left out without it."},
				{Name: "exports", Type: TypeStrings, Default: "[]", Doc: "Paths of the module's values, \"domain\" or \"auth.url\", that other modules may read: their hooks by values.of, their charts below global.exports. While another module has no such value there is nothing."},
				{Name: "config", Type: TypeStrings, Default: "[]", Doc: "Paths of the user's config, \"password\" or \"tls\" with all below it, that the hooks may change by config.set and config.remove; in global/module.star \"global.zone\"."},
				{Name: "http", Type: TypeList, Default: "[]", Doc: "Hosts that hooks may reach by http.get, http.request, http.gather and http.send: \"api.example.com\", \"*.example.com\" (any name below), an address or a range, \"10.0.0.0/8\"; each with \":8080\" for that port only. A name must lead to a public address, unless the range of the address is listed, too; \"localhost\" is this machine. http.pods, http.services, http.objects and http.from_config name hosts that are found as a hook runs."},
				{Name: "chart", Type: TypeString, Default: "None", Doc: "Chart that somebody else publishes: the registry or the repository and, after the last slash, its name: \"oci://ghcr.io/org/charts/web\", or \"https://example.com/charts/web\" for chart web of the repository whose index is https://example.com/charts/index.yaml. The folder then holds no chart; its values.yaml is laid over that of the chart. starling fetch gets it, and notes it in starling.lock."},
				{Name: "version", Type: TypeString, Default: "None", Doc: "Version of the chart, \"1.2.3\", or a range, \"~1.2\", of which starling fetch chooses the newest. It must be there when chart is."},
				{Name: "digest", Type: TypeString, Default: "None", Doc: "SHA-256 of the archive of the chart: \"sha256:\" and 64 hex digits, as starling.lock has it; any other archive is an error. Default: that of starling.lock."},
			},
		},
		{
			Name: "grant", Phases: PhaseLoad, call: callGrant, Returns: "a grant for module(grants = […]), module(installs = […]) or module(lookup = […])",
			Doc: "Allows the hooks of a module, or its chart, some verbs on some objects.",
			Params: []Param{
				{Name: "api_version", Type: TypeString, Doc: "API version of the objects, as in manifests: \"v1\", \"apps/v1\"."},
				{Name: "kind", Type: TypeString, Doc: "Kind of the objects, as in manifests: \"ConfigMap\". With mutate alone also \"*\"."},
				{Name: "verbs", Type: TypeStrings, Default: "None", Doc: "In grants: RBAC's verbs (get, list, create, patch, update, delete, …, \"*\"), apply (create and patch), or write (all that change objects). Status takes patch, an eviction delete. For v1 Pods also exec and logs, for v1 ServiceAccounts token. Beside calls, mutate lets hooks of k8s.mutate change such objects as they are written, finalize a cleanup hold up their deletion, convert those of k8s.convert answer for the CustomResourceDefinition in names; kinds in crds/ of the module need none of them. For roles also bind and escalate, which let hooks give rights that Starling lacks. \"*\" holds none of these."},
				{Name: "namespaces", Type: TypeStrings, Default: "None", Doc: "Where; None: the module's own namespace only; [\"*\"]: everywhere. Cluster-scoped kinds ignore it."},
				{Name: "names", Type: TypeStrings, Default: "None", Doc: "Names of the objects; None: all. A grant with names, labels or owned allows no k8s.list; for a watch of Secrets with object_names=, list and watch with names do."},
				{Name: "labels", Type: TypeSelector, Default: "None", Doc: "Only objects with these labels: a dict of equal values, or the text kubectl takes. The object in the cluster must have them when it is read or written, and what is applied or created must bring them."},
				{Name: "owned", Type: TypeBool, Default: "False", Doc: "Only objects that hooks of this module have made: they carry the annotation starling.dev/made-by, with the instance and the module, and its signature. They may make an object that is not there. One that a backup has brought back, or that was made while the clocks of Starling and the API server were ten minutes apart, does not count: delete it, for hooks to make it anew, or name it in a grant without owned."},
			},
		},
		{
			Name: "retry", Phases: PhaseLoad, call: callRetry, Returns: "a retry rule for hook(retry = …)",
			Doc: "Says how a failed run is repeated: after min, then each time factor times later, up to max, with up to 20 % jitter.",
			Params: []Param{
				{Name: "min", Type: TypeDuration, Default: `"1s"`, Doc: "Delay before the first repetition."},
				{Name: "max", Type: TypeDuration, Default: `"5m"`, Doc: "Longest delay."},
				{Name: "factor", Type: TypeNumber, Default: "2", Doc: "By how much the delay grows, 1 to 100."},
			},
		},
		{
			Name: "waiting", Phases: PhaseEnabled | PhaseDesired, call: callDecision(AnswerWaiting), Returns: "an answer of enabled() or readiness(), or of desired",
			Doc:    "Answer of enabled(): not yet. Nothing is installed, upgraded or uninstalled. Answer of readiness(): the release goes on, and modules that require this one wait. Answer of a controller's desired: not yet. Nothing is written or deleted.",
			Params: []Param{{Name: "reason", Type: TypeString, Doc: "The reason why the module, or the parent, waits; shown in the status of the module, or of the controller."}},
		},
		{
			Name: "disabled", Phases: PhaseEnabled, call: callDecision(AnswerDisabled), Returns: "an answer of enabled()",
			Doc:    "Answer of enabled(): off. The release is uninstalled.",
			Params: []Param{{Name: "reason", Type: TypeString, Doc: "Why the module is off; shown in its status."}},
		},
	}
}

// declared is a value that a declaring builtin returns and another one takes.
type declared[T any] struct {
	kind string
	val  T
}

func (d *declared[T]) String() string        { return "<" + d.kind + ">" }
func (d *declared[T]) Type() string          { return d.kind }
func (d *declared[T]) Freeze()               {}
func (d *declared[T]) Truth() starlark.Bool  { return true }
func (d *declared[T]) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: %s", d.kind) }

var (
	keyPattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	kindPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)
)

// defaultReleaseTimeout is module(timeout=).
const defaultReleaseTimeout = 10 * time.Minute

// maxReleaseTimeout bounds it: a release holds one of few places.
const maxReleaseTimeout = 2 * time.Hour

func callModule(c *call) (starlark.Value, error) {
	file := c.ctx.File
	switch {
	case file.Role&RoleModule == 0:
		return nil, fmt.Errorf("only module.star declares a module; this is %s", file.Path)
	case file.Module != nil:
		return nil, fmt.Errorf("called twice; the first call is at %s", file.Module.Pos)
	}
	global := path.Dir(file.Path) == "global"
	if global {
		for i, p := range c.spec.Params {
			if c.args[i] != nil && p.Name != "grants" && p.Name != "http" && p.Name != "config" {
				return nil, fmt.Errorf("%s: global hooks are no module; only grants, http and config may be given here", p.Name)
			}
		}
	}
	m := &ModuleDecl{
		Enabled:  c.boolOr("enabled", false),
		After:    c.strings("after"),
		Requires: c.strings("requires"),
		Test:     c.boolOr("test", false),
		Wait:     c.boolOr("wait", false) || c.boolOr("test", false),
		Adopt:    c.boolOr("adopt", false),
		Timeout:  c.durationOr("timeout", defaultReleaseTimeout),
		Pos:      c.pos(),
	}
	if c.arg("weight") != nil {
		w := c.intOr("weight", 0)
		if w < 0 {
			return nil, fmt.Errorf("weight: %d is negative", w)
		}
		m.Weight = &w
	}
	if m.Timeout == 0 || m.Timeout > maxReleaseTimeout {
		return nil, fmt.Errorf("timeout: %s is not between 0 and %s", m.Timeout, maxReleaseTimeout)
	}
	for _, name := range m.After {
		if err := dnsLabel(name, 63); err != nil {
			return nil, fmt.Errorf("after: %w", err)
		}
	}
	for _, name := range []struct {
		param string
		most  int // Helm's limit for release names is 53
		to    *string
	}{{"namespace", 63, &m.Namespace}, {"release", 53, &m.Release}} {
		if *name.to = c.strOr(name.param, ""); c.arg(name.param) != nil && dnsLabel(*name.to, name.most) != nil {
			return nil, fmt.Errorf("%s: %w", name.param, dnsLabel(*name.to, name.most))
		}
	}
	if c.arg("values_key") != nil {
		if m.ValuesKey = c.str("values_key"); !keyPattern.MatchString(m.ValuesKey) {
			return nil, fmt.Errorf("values_key: %q is no key: letters, digits, - and _", clip(m.ValuesKey))
		}
	}
	for _, pattern := range c.strings("crd_filter") {
		if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
			return nil, fmt.Errorf(`crd_filter: %q is no pattern of file names, such as "old-*.yaml"`, clip(pattern))
		}
		m.CRDFilter = append(m.CRDFilter, pattern)
	}
	var err error
	if m.Labels, err = c.labels("labels"); err != nil {
		return nil, err
	}
	if m.LostUninstalls, err = c.requirements(); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		param string
		to    *[]Grant
		check func(*Grant) error
	}{{"grants", &m.Grants, forHooks}, {"installs", &m.Installs, forInstalls}, {"lookup", &m.Lookup, forLookup}} {
		if *list.to, err = c.grants(list.param, list.check); err != nil {
			return nil, err
		}
	}
	choices := map[string]string{}
	for _, of := range [][]string{{"crds", "keep", "force"}, {"on_failure", "retry", "rollback"}, {"drift", DriftRepair, DriftReport, DriftIgnore}} {
		if choices[of[0]], err = oneOf(c.strOr(of[0], of[1]), of[1:]); err != nil {
			return nil, fmt.Errorf("%s: %w", of[0], err)
		}
	}
	m.ForceCRDs, m.Rollback, m.Drift = choices["crds"] == "force", choices["on_failure"] == "rollback", choices["drift"]
	for _, text := range c.strings("ignore") {
		ignore, err := owned.ParseIgnore(text)
		if err != nil {
			return nil, fmt.Errorf("ignore: %w", err)
		}
		m.Ignore = append(m.Ignore, ignore)
	}
	if m.Exports, err = c.exports(); err != nil {
		return nil, err
	}
	if m.Config, err = c.configPaths(global); err != nil {
		return nil, err
	}
	if m.Hosts, m.HostSources, err = c.listedHosts(); err != nil {
		return nil, fmt.Errorf("http: %w", err)
	}
	if m.Chart, err = c.remoteChart(); err == nil {
		file.Module = m
	}
	return nil, err
}

// dnsLabel refuses what Kubernetes would not take as a name of a namespace.
func dnsLabel(name string, most int) error {
	if len(name) > most {
		return fmt.Errorf("%q is longer than %d characters", clip(name), most)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%q is no valid name: lower case letters, digits and -", clip(name))
	}
	return nil
}

// grantVerbs are RBAC's verbs for objects, and ours.
var grantVerbs = [...]string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "apply", "write", "exec", "logs", "token",
	VerbMutate, VerbConvert, VerbFinalize, "bind", "escalate",
}

func callGrant(c *call) (starlark.Value, error) {
	g := Grant{
		APIVersion: c.str("api_version"),
		Kind:       c.str("kind"),
		Verbs:      c.strings("verbs"),
		Namespaces: c.strings("namespaces"),
		Names:      c.strings("names"),
	}
	all := g.Kind == "*" && len(g.Verbs) > 0 && len(g.Calls()) == 0
	if err := checkKind(g.APIVersion, g.Kind); err != nil && !all {
		return nil, err
	}
	if c.arg("verbs") != nil && len(g.Verbs) == 0 {
		return nil, errors.New("verbs: the list is empty, so nothing is granted")
	}
	for _, v := range g.Verbs {
		if !slices.Contains(grantVerbs[:], v) {
			hint := ""
			if near := message.Nearest(v, grantVerbs[:]); near != "" {
				hint = " (did you mean " + near + "?)"
			}
			return nil, fmt.Errorf("verbs: %q is no verb%s", clip(v), hint)
		}
		if roles := g.Kind == "Role" || g.Kind == "ClusterRole"; (v == "bind" || v == "escalate") && (groupOf(g.APIVersion) != "rbac.authorization.k8s.io" || !roles) {
			return nil, fmt.Errorf(`verbs: %q is for roles alone: grant("rbac.authorization.k8s.io/v1", "ClusterRole", verbs = [%q])`, v, v)
		}
		if kind := verbsOfKinds[v]; kind != "" && (g.APIVersion != "v1" || g.Kind != kind) {
			return nil, fmt.Errorf(`verbs: %q is for %ss alone: grant("v1", %q, verbs = [%q])`, v, kind, kind, v)
		}
	}
	if err := checkNamespaces(g.Namespaces); err != nil {
		return nil, err
	}
	if err := checkNames("names", g.Names); err != nil {
		return nil, err
	}
	labels, err := c.labelSelector("labels")
	if err != nil {
		return nil, err
	}
	if c.arg("labels") != nil && labels == "" {
		return nil, errors.New("labels: the selector is empty")
	}
	g.Labels, g.Owned = labels, c.boolOr("owned", false)
	return &declared[Grant]{"grant", g}, nil
}

// checkNamespaces checks a list of namespaces, of which "*" may be one.
func checkNamespaces(namespaces []string) error {
	if namespaces != nil && len(namespaces) == 0 {
		return errors.New("namespaces: the list is empty")
	}
	for _, ns := range namespaces {
		if ns == "*" {
			continue
		}
		if err := dnsLabel(ns, 63); err != nil {
			return fmt.Errorf("namespaces: %w", err)
		}
	}
	return nil
}

// checkNames checks a list of object names.
func checkNames(param string, names []string) error {
	if names != nil && len(names) == 0 {
		return fmt.Errorf("%s: the list is empty", param)
	}
	for _, n := range names {
		if err := checkName(n); err != nil {
			return fmt.Errorf("%s: %w", param, err)
		}
	}
	return nil
}

// checkName refuses what no API server would take as the name of any object.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/%") || len(name) > 253 {
		return fmt.Errorf("%q is no name of an object", clip(name))
	}
	return nil
}

// checkKind refuses API versions and kinds that cannot be. Kinds of Kubernetes' own
// groups begin with a capital letter, so "configmaps" is found out at once; other
// kinds that are not served show when the cluster is asked.
func checkKind(apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if hint, ok := IsKind(apiVersion); ok {
		return fmt.Errorf("api_version: %q is none; %s", clip(apiVersion), hint)
	}
	if err != nil || gv.Version == "" {
		return fmt.Errorf(`api_version: %q is none; write "v1" or "apps/v1"`, clip(apiVersion))
	}
	if !kindPattern.MatchString(kind) {
		return fmt.Errorf(`kind: %q is none; write it as in manifests, "ConfigMap"`, clip(kind))
	}
	if (!strings.Contains(gv.Group, ".") || strings.HasSuffix(gv.Group, ".k8s.io")) && (kind[0] < 'A' || kind[0] > 'Z') {
		return fmt.Errorf(`kind: %q begins with a small letter; write it as in manifests, %q`, clip(kind), kindExample(kind))
	}
	return nil
}

func callRetry(c *call) (starlark.Value, error) {
	r := DefaultRetry
	r.Min, r.Max = c.durationOr("min", r.Min), c.durationOr("max", r.Max)
	if v := c.arg("factor"); v != nil {
		r.Factor, _ = starlark.AsFloat(v)
	}
	switch {
	case r.Min < minRequeue:
		return nil, fmt.Errorf("min: must be at least %s", minRequeue)
	case r.Max < r.Min:
		return nil, fmt.Errorf("max: %s is less than min, %s", r.Max, r.Min)
	case math.IsNaN(r.Factor) || r.Factor < 1 || r.Factor > 100:
		return nil, errors.New("factor: must be 1 to 100")
	}
	return &declared[Retry]{"retry", r}, nil
}

func callDecision(answer Answer) func(*call) (starlark.Value, error) {
	return func(c *call) (starlark.Value, error) {
		return &declared[Decision]{c.spec.Name, Decision{Answer: answer, Reason: c.str("reason")}}, nil
	}
}

// DecisionOf reads what enabled() returned: True, False, waiting("…") or
// disabled("…").
func DecisionOf(v starlark.Value) (Decision, error) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return Decision{Answer: AnswerOn}, nil
		}
		return Decision{Answer: AnswerDisabled, Reason: "enabled() returned False"}, nil
	case *declared[Decision]:
		return v.val, nil
	}
	return Decision{}, fmt.Errorf(`enabled() returned %s; it must return True, waiting("…"), disabled("…") or False`, v.Type())
}

// UnreadyOf reads what readiness() returned: "" for True, the reason of waiting("…").
func UnreadyOf(v starlark.Value) (string, error) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return "", nil
		}
		return "", errors.New(`readiness() returned False; say why with waiting("…")`)
	case *declared[Decision]:
		if v.val.Answer == AnswerWaiting {
			return cmp.Or(v.val.Reason, "waiting"), nil
		}
	}
	return "", fmt.Errorf(`readiness() returned %s; it must return True or waiting("…")`, v.Type())
}
