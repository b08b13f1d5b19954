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

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// The declarations of a module: module, grant, hook, retry, and the answers of enabled().

func declareSpecs() []spec.Spec {
	return []spec.Spec{
		declare("module", spec.InLoad, spec.NoEffect, callModule, spec.Optional("enabled", spec.Bool, "False"),
			spec.Optional("weight", spec.Int, "None"), spec.Optional("after", spec.Strings, "[]"),
			spec.Optional("requires", spec.Strings, "[]"), spec.Optional("on_requirement_lost", spec.String, `"keep"`),
			spec.Optional("namespace", spec.String, "None"), spec.Optional("values_key", spec.String, "None"),
			spec.Optional("release", spec.String, "None"), spec.Optional("adopt", spec.Bool, "False"),
			spec.Optional("wait", spec.Bool, "False"), spec.Optional("test", spec.Bool, "False"),
			spec.Optional("timeout", spec.Duration, `"10m"`).UpTo(maxReleaseTimeout),
			spec.Optional("on_failure", spec.String, `"retry"`),
			spec.Optional("drift", spec.String, `"repair"`), spec.Optional("ignore", spec.Strings, "[]"),
			spec.Optional("grants", spec.List, "[]"), spec.Optional("installs", spec.List, "[]"),
			spec.Optional("lookup", spec.List, "[]"), spec.Optional("labels", spec.Dict, "{}"),
			spec.Optional("crds", spec.String, `"keep"`), spec.Optional("crd_filter", spec.Strings, "[]"),
			spec.Optional("exports", spec.Strings, "[]"), spec.Optional("config", spec.Strings, "[]"),
			spec.Optional("http", spec.List, "[]"), spec.Optional("chart", spec.String, "None"),
			spec.Optional("version", spec.String, "None"), spec.Optional("digest", spec.String, "None")),
		declare("grant", spec.InLoad, spec.NoEffect, callGrant, spec.Required("api_version", spec.String),
			spec.Required("kind", spec.String), spec.Optional("verbs", spec.Strings, "None"),
			spec.Optional("namespaces", spec.Strings, "None"), spec.Optional("names", spec.Strings, "None"),
			spec.Optional("labels", spec.Selector, "None"), spec.Optional("owned", spec.Bool, "False")),
		declare("retry", spec.InLoad, spec.NoEffect, callRetry, spec.Optional("min", spec.Duration, `"1s"`),
			spec.Optional("max", spec.Duration, `"5m"`), spec.Optional("factor", spec.Number, "2")),
		declare("waiting", spec.InEnabled|spec.InDesired, spec.NoEffect, callDecision(AnswerWaiting),
			spec.Required("reason", spec.String)),
		declare("disabled", spec.InEnabled, spec.NoEffect, callDecision(AnswerDisabled),
			spec.Required("reason", spec.String)),
	}
}

// declared is a value that a declaring builtin returns and another one takes.
type declared[T any] struct {
	spec.Opaque
	val T
}

// Written is the call that has made it, where errors show that.
func (d *declared[T]) Written() string {
	if b, is := any(d.val).(Binding); is && b.Startup != nil {
		return "startup()"
	}
	return "…"
}

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
		for i, p := range c.Spec.Params {
			if c.Args[i] != nil && p.Name != "grants" && p.Name != "http" && p.Name != "config" {
				return nil, fmt.Errorf("%s: global hooks are no module; only grants, http and config may be given here", p.Name)
			}
		}
	}
	m := &ModuleDecl{
		Enabled:  c.BoolOr("enabled", false),
		After:    c.Strings("after"),
		Requires: c.Strings("requires"),
		Test:     c.BoolOr("test", false),
		Wait:     c.BoolOr("wait", false) || c.BoolOr("test", false),
		Adopt:    c.BoolOr("adopt", false),
		Timeout:  c.DurationOr("timeout", defaultReleaseTimeout),
		Pos:      c.Pos(),
	}
	if c.Arg("weight") != nil {
		w := c.IntOr("weight", 0)
		if w < 0 {
			return nil, fmt.Errorf("weight: %d is negative", w)
		}
		m.Weight = &w
	}
	for _, name := range m.After {
		if err := spec.DNSLabel(name, 63); err != nil {
			return nil, fmt.Errorf("after: %w", err)
		}
	}
	for _, name := range []struct {
		param string
		most  int // Helm's limit for release names is 53
		to    *string
	}{{"namespace", 63, &m.Namespace}, {"release", 53, &m.Release}} {
		if *name.to = c.StrOr(name.param, ""); c.Arg(name.param) != nil && spec.DNSLabel(*name.to, name.most) != nil {
			return nil, fmt.Errorf("%s: %w", name.param, spec.DNSLabel(*name.to, name.most))
		}
	}
	if c.Arg("values_key") != nil {
		if m.ValuesKey = c.Str("values_key"); !keyPattern.MatchString(m.ValuesKey) {
			return nil, fmt.Errorf("values_key: %q is no key: letters, digits, - and _", spec.Clip(m.ValuesKey))
		}
	}
	for _, pattern := range c.Strings("crd_filter") {
		if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
			return nil, fmt.Errorf(`crd_filter: %q is no pattern of file names, such as "old-*.yaml"`, spec.Clip(pattern))
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
	for _, of := range [][]string{
		{"crds", "keep", "force"}, {"on_failure", "retry", "rollback"}, {"drift", DriftRepair, DriftReport, DriftIgnore},
	} {
		if choices[of[0]], err = c.word(of[0], of[1:]...); err != nil {
			return nil, err
		}
	}
	m.ForceCRDs, m.Rollback, m.Drift = choices["crds"] == "force", choices["on_failure"] == "rollback", choices["drift"]
	for _, text := range c.Strings("ignore") {
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

// grantVerbs are RBAC's verbs for objects, and ours.
var grantVerbs = [...]string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*", "apply", "write", "exec", "logs", "token",
	VerbMutate, VerbConvert, VerbFinalize, "bind", "escalate",
}

func callGrant(c *call) (starlark.Value, error) {
	g := Grant{
		APIVersion: c.Str("api_version"),
		Kind:       c.Str("kind"),
		Verbs:      c.Strings("verbs"),
		Namespaces: c.Strings("namespaces"),
		Names:      c.Strings("names"),
	}
	all := g.Kind == "*" && len(g.Verbs) > 0 && len(g.Calls()) == 0
	if err := checkKind(g.APIVersion, g.Kind); err != nil && !all {
		return nil, err
	}
	if c.Arg("verbs") != nil && len(g.Verbs) == 0 {
		return nil, errors.New("verbs: the list is empty, so nothing is granted")
	}
	for _, v := range g.Verbs {
		if !slices.Contains(grantVerbs[:], v) {
			hint := message.DidYouMean(v, grantVerbs[:], "it takes "+strings.Join(grantVerbs[:], ", "))
			return nil, fmt.Errorf("verbs: %q is no verb (%s)", spec.Clip(v), hint)
		}
		roles := effect.GroupOf(g.APIVersion) == "rbac.authorization.k8s.io" && (g.Kind == "Role" || g.Kind == "ClusterRole")
		if (v == "bind" || v == "escalate") && !roles {
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
	if c.Arg("labels") != nil && labels == "" {
		return nil, errors.New("labels: the selector is empty")
	}
	g.Labels, g.Owned = labels, c.BoolOr("owned", false)
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
		if err := spec.DNSLabel(ns, 63); err != nil {
			return fmt.Errorf("namespaces: %w", err)
		}
	}
	return nil
}

// namespaces reads namespaces=; nil: all.
func (c *call) namespaces() ([]string, error) {
	given := c.Strings("namespaces")
	if err := checkNamespaces(given); err != nil || contains(given, "*") {
		return nil, err
	}
	return given, nil
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
		return fmt.Errorf("%q is no name of an object", spec.Clip(name))
	}
	return nil
}

// checkKind refuses API versions and kinds that cannot be. Kinds of Kubernetes' own groups begin with a capital
// letter, so "configmaps" is found out at once; other kinds that are not served show when the cluster is asked.
func checkKind(apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if hint, ok := spec.IsKind(apiVersion); ok {
		return fmt.Errorf("api_version: %q is none; %s", spec.Clip(apiVersion), hint)
	}
	if err != nil || gv.Version == "" {
		return fmt.Errorf(`api_version: %q is none; write "v1" or "apps/v1"`, spec.Clip(apiVersion))
	}
	if !kindPattern.MatchString(kind) {
		return fmt.Errorf(`kind: %q is none; write it as in manifests, "ConfigMap"`, spec.Clip(kind))
	}
	if (!strings.Contains(gv.Group, ".") || strings.HasSuffix(gv.Group, ".k8s.io")) && (kind[0] < 'A' || kind[0] > 'Z') {
		return fmt.Errorf(`kind: %q begins with a small letter; write it as in manifests, %q`, spec.Clip(kind), spec.KindExample(kind))
	}
	return nil
}

var errUnseen = errors.New("no hook is told of Module objects; settings_check(old, new) of module.star judges them")

// checkSeen is checkKind, and refuses the kind that no hook is told of.
func checkSeen(apiVersion, kind string) error {
	if effect.GroupOf(apiVersion) == effect.GroupOf(effect.ModuleAPIVersion) && kind == effect.ModuleKind {
		return errUnseen
	}
	return checkKind(apiVersion, kind)
}

func callRetry(c *call) (starlark.Value, error) {
	r := DefaultRetry
	r.Min, r.Max = c.DurationOr("min", r.Min), c.DurationOr("max", r.Max)
	if v := c.Arg("factor"); v != nil {
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
		return &declared[Decision]{spec.Opaque(c.Spec.Name), Decision{Answer: answer, Reason: c.Str("reason")}}, nil
	}
}

// DecisionOf reads what enabled() returned: True, False, waiting("…") or disabled("…").
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
