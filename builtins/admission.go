package builtins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// AdmissionBinding is k8s.validate(...) or k8s.mutate(...).
type AdmissionBinding struct {
	Mutate bool
	// APIVersion and Kind say what is reviewed, when Rules is nil: the resource of
	// the kind, with Operations and Scope.
	APIVersion, Kind string
	Operations       []string
	Scope            string // "*", "Namespaced" or "Cluster"
	// Rules are what resources= or rules= say, complete.
	Rules []AdmissionRule
	// FailurePolicy is "Fail" or "Ignore".
	FailurePolicy string
	// SideEffects is "None" or "NoneOnDryRun".
	SideEffects string
	// MatchPolicy is "Equivalent" or "Exact".
	MatchPolicy string
	// Timeout is in whole seconds, 1 to 30.
	Timeout time.Duration
	// Conditions are CEL expressions that must all hold.
	Conditions []MatchCondition
	// Labels and NamespaceLabels are label selectors as kubectl takes them; empty:
	// all. Each can be had as a selector of objects, see metav1.ParseToLabelSelector.
	Labels, NamespaceLabels string
	// Namespaces: nil means all. ExcludeNamespaces are taken away from them.
	Namespaces, ExcludeNamespaces []string
	// Reinvoke calls a mutating hook again when others have changed the object
	// after it.
	Reinvoke bool
	Pos      string
}

// AdmissionRule says which requests are reviewed, in Kubernetes' own words.
type AdmissionRule struct {
	Groups, Versions, Resources, Operations []string
	Scope                                   string
}

// MatchCondition is one expression in CEL, with a name for messages.
type MatchCondition struct{ Name, Expression string }

func webhookSpecs() []spec.Spec {
	return []spec.Spec{
		admissionSpec("k8s.validate"),
		admissionSpec("k8s.mutate", spec.Keyword("reinvoke", spec.Bool, "False")),
		convertSpec(),
		declare("deny", spec.InReview, spec.NoEffect, callDeny, spec.Required("msg", spec.String),
			spec.Optional("code", spec.Int, "403")),
		declare("warn", spec.InReview, spec.Writes, callWarn, spec.Required("msg", spec.String)),
	}
}

func admissionSpec(name string, more ...spec.Param) spec.Spec {
	return declare(name, spec.InLoad, spec.NoEffect, callAdmission, append([]spec.Param{
		spec.Optional("api_version", spec.String, "None"), spec.Optional("kind", spec.String, "None"),
		spec.Optional("operations", spec.Strings, `["CREATE", "UPDATE"]`), spec.Keyword("failure_policy", spec.String, ""),
		spec.Keyword("name", spec.String, "None"), spec.Keyword("resources", spec.Strings, "None"),
		spec.Keyword("rules", spec.List, "None"), spec.Keyword("scope", spec.String, `"*"`),
		spec.Keyword("labels", spec.Selector, "None"), spec.Keyword("namespaces", spec.Strings, "None"),
		spec.Keyword("exclude_namespaces", spec.Strings, "None"), spec.Keyword("namespace_labels", spec.Selector, "None"),
		spec.Keyword("match_conditions", spec.Conditions, "None"), spec.Keyword("match_policy", spec.String, `"Equivalent"`),
		spec.Keyword("side_effects", spec.String, `"None"`), spec.Keyword("timeout", spec.Duration, `"10s"`),
	}, more...)...)
}

func callAdmission(c *call) (starlark.Value, error) {
	timeout := c.DurationOr("timeout", 10*time.Second)
	b := &AdmissionBinding{Mutate: c.Spec.Name == "k8s.mutate", Pos: c.Pos(), Timeout: timeout}
	name, err := c.shortName("name")
	if err != nil {
		return nil, err
	}
	if b.Mutate {
		b.Reinvoke = c.BoolOr("reinvoke", false)
	}
	if b.Timeout < time.Second || b.Timeout > 30*time.Second || b.Timeout%time.Second != 0 {
		return nil, fmt.Errorf("timeout: got %s, want 1 to 30 whole seconds", b.Timeout)
	}
	for _, o := range []struct {
		to    *string
		param string
		words []string
	}{
		{&b.FailurePolicy, "failure_policy", []string{"Fail", "Ignore"}},
		{&b.SideEffects, "side_effects", []string{"None", "NoneOnDryRun"}},
		{&b.MatchPolicy, "match_policy", []string{"Equivalent", "Exact"}},
		{&b.Scope, "scope", scopes[:]},
	} {
		if *o.to, err = c.word(o.param, o.words...); err != nil {
			return nil, err
		}
	}
	if err := c.admissionRules(b); err != nil {
		return nil, err
	}
	if err := c.admissionSelectors(b); err != nil {
		return nil, err
	}
	if b.Conditions, err = c.matchConditions(); err != nil {
		return nil, fmt.Errorf("match_conditions: %w", err)
	}
	return binding(Binding{Name: name, Admission: b})
}

// scopes are those of a rule.
var scopes = [...]string{"*", "Namespaced", "Cluster"}

// word reads an argument that is one of a fixed set of words; the first one is its default.
func (c *call) word(param string, words ...string) (string, error) {
	word, err := oneOf(c.StrOr(param, words[0]), words)
	if err != nil {
		return "", fmt.Errorf("%s: %w", param, err)
	}
	return word, nil
}

// oneOf finds a word of a fixed set, whatever its case.
func oneOf(text string, words []string) (string, error) {
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w, nil
		}
	}
	return "", fmt.Errorf("got %q, want \"%s\"", spec.Clip(text), strings.Join(words, `" or "`))
}

// admissionSelectors reads labels=, namespace_labels=, namespaces= and
// exclude_namespaces=.
func (c *call) admissionSelectors(b *AdmissionBinding) (err error) {
	for _, s := range []struct {
		param string
		to    *string
	}{{"labels", &b.Labels}, {"namespace_labels", &b.NamespaceLabels}} {
		text, err := c.labelSelector(s.param)
		if err != nil {
			return err
		}
		if _, err := metav1.ParseToLabelSelector(text); err != nil {
			return fmt.Errorf("%s: %q: the API server takes =, !=, in, notin and whether a label is there",
				s.param, spec.Clip(text))
		}
		*s.to = text
	}
	b.Namespaces, b.ExcludeNamespaces, err = c.selectedNamespaces()
	return err
}

// Bounds of the API server.
const (
	maxConditions = 64
	maxExpression = 16 << 10
	maxRules      = 100
)

// matchConditions reads match_conditions= in its two forms.
func (c *call) matchConditions() ([]MatchCondition, error) {
	var out []MatchCondition
	add := func(name, expression starlark.Value) error {
		n, ok1 := starlark.AsString(name)
		e, ok2 := starlark.AsString(expression)
		switch {
		case !ok1 || !ok2:
			return errors.New("name and expression must be strings")
		case len(content.IsLabelKey(strings.ReplaceAll(n, " ", "-"))) > 0:
			return fmt.Errorf("%q is no name: letters, digits, -, _, . and spaces", spec.Clip(n))
		case strings.TrimSpace(e) == "":
			return fmt.Errorf("%q: the expression is empty", spec.Clip(n))
		case len(e) > maxExpression:
			return fmt.Errorf("%q: the expression is longer than %d KiB", spec.Clip(n), maxExpression>>10)
		case len(out) == maxConditions:
			return fmt.Errorf("more than %d", maxConditions)
		}
		n = strings.ReplaceAll(n, " ", "-")
		for _, other := range out {
			if other.Name == n {
				return fmt.Errorf("%q is used twice", spec.Clip(n))
			}
		}
		out = append(out, MatchCondition{n, e})
		return nil
	}
	switch v := c.Arg("match_conditions").(type) {
	case nil:
	case starlark.IterableMapping:
		for k, e := range starlark.Entries(v) {
			if err := add(k, e); err != nil {
				return nil, err
			}
		}
	case starlark.Indexable:
		for i := range v.Len() {
			if !spec.IsDict(v.Index(i)) {
				return nil, fmt.Errorf("element %d: got %s, want a dict with name and expression", i, v.Index(i).Type())
			}
			if err := add(spec.Member(v.Index(i), "name"), spec.Member(v.Index(i), "expression")); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
	}
	return out, nil
}

// operations are what the API server may ask about.
var operations = [...]string{"CREATE", "UPDATE", "DELETE", "CONNECT", "*"}

func checkAsked(asked []string) error {
	if len(asked) == 0 {
		return errors.New("the list is empty, so nothing would be asked about")
	}
	for _, op := range asked {
		if contains(operations[:], op) {
			continue
		}
		hint := message.DidYouMean(op, operations[:], "it takes "+strings.Join(operations[:], ", "))
		return fmt.Errorf("%q is none (%s)", spec.Clip(op), hint)
	}
	return nil
}

// admissionRules reads what is reviewed, in its three forms.
func (c *call) admissionRules(b *AdmissionBinding) error {
	b.APIVersion, b.Kind = c.Str("api_version"), c.Str("kind")
	b.Operations = c.Strings("operations")
	resources := c.Strings("resources")
	if c.Arg("rules") != nil {
		for _, p := range []string{"api_version", "kind", "operations", "resources", "scope"} {
			if c.Arg(p) != nil {
				return fmt.Errorf("rules: they say it all; leave %s out", p)
			}
		}
		var err error
		if b.Rules, err = rulesOf(c.Arg("rules").(starlark.Indexable)); err != nil {
			return fmt.Errorf("rules: %w", err)
		}
		return nil
	}
	if b.Operations == nil {
		b.Operations = []string{"CREATE", "UPDATE"}
	}
	if err := checkAsked(b.Operations); err != nil {
		return fmt.Errorf("operations: %w", err)
	}
	switch {
	case c.Arg("api_version") == nil:
		return errors.New("api_version is missing: say what is reviewed by api_version and kind, api_version and resources, or rules")
	case c.Arg("kind") != nil && resources != nil:
		return errors.New("kind and resources exclude each other")
	case c.Arg("kind") != nil:
		return checkSeen(b.APIVersion, b.Kind)
	case resources == nil:
		return errors.New("kind is missing: say what is reviewed by api_version and kind, api_version and resources, or rules")
	}
	gv, err := schema.ParseGroupVersion(b.APIVersion)
	if err != nil || gv.Version == "" {
		return fmt.Errorf(`api_version: %q is none; write "v1", "apps/v1" or "apps/*"`, spec.Clip(b.APIVersion))
	}
	if err := checkResources(resources); err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	b.Rules = []AdmissionRule{{[]string{gv.Group}, []string{gv.Version}, resources, b.Operations, b.Scope}}
	return b.Rules[0].seen()
}

// seen says why nobody is asked by the rule.
func (r AdmissionRule) seen() error {
	group := effect.GroupOf(effect.ModuleAPIVersion)
	if slices.Equal(r.Groups, []string{group}) && slices.Equal(r.Resources, []string{"modules"}) {
		return errUnseen
	}
	return nil
}

func checkResources(resources []string) error {
	if len(resources) == 0 {
		return errors.New("the list is empty")
	}
	for _, r := range resources {
		name, sub, _ := strings.Cut(r, "/")
		if name == "" || strings.ToLower(r) != r || strings.Contains(sub, "/") || strings.ContainsAny(r, " .") || strings.HasSuffix(r, "/") {
			return fmt.Errorf("%q is none; write it as in URLs, \"configmaps\" or \"pods/eviction\"", spec.Clip(r))
		}
	}
	return nil
}

// ruleKeys are the fields of a rule.
var ruleKeys = [...]string{"apiGroups", "apiVersions", "resources", "operations", "scope"}

// rulesOf reads rules=.
func rulesOf(list starlark.Indexable) ([]AdmissionRule, error) {
	if list.Len() == 0 || list.Len() > maxRules {
		return nil, fmt.Errorf("there are %d, want 1 to %d", list.Len(), maxRules)
	}
	var out []AdmissionRule
	for i := range list.Len() {
		r, err := ruleOf(list.Index(i))
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func ruleOf(v starlark.Value) (AdmissionRule, error) {
	r := AdmissionRule{Scope: "*"}
	dict, ok := v.(starlark.IterableMapping)
	if !ok || !spec.IsDict(v) {
		return r, fmt.Errorf("got %s, want dict", v.Type())
	}
	lists := map[string]*[]string{"apiGroups": &r.Groups, "apiVersions": &r.Versions, "resources": &r.Resources, "operations": &r.Operations}
	for k, e := range starlark.Entries(dict) {
		key, _ := starlark.AsString(k)
		if key == "scope" {
			text, _ := starlark.AsString(e)
			var err error
			if r.Scope, err = oneOf(text, scopes[:]); err != nil {
				return r, fmt.Errorf("scope: %w", err)
			}
			continue
		}
		to := lists[key]
		if to == nil {
			hint := message.DidYouMean(key, ruleKeys[:], "it takes "+strings.Join(ruleKeys[:], ", "))
			return r, fmt.Errorf("%s is no field of a rule (%s)", spec.Clip(k.String()), hint)
		}
		if err := spec.Strings.Check(e); err != nil {
			return r, fmt.Errorf("%s: %w", key, err)
		}
		*to = spec.StringsOf(e)
	}
	for _, key := range ruleKeys[:4] {
		if len(*lists[key]) == 0 {
			return r, fmt.Errorf("%s is missing or empty", key)
		}
	}
	if err := checkAsked(r.Operations); err != nil {
		return r, fmt.Errorf("operations: %w", err)
	}
	if err := checkResources(r.Resources); err != nil {
		return r, fmt.Errorf("resources: %w", err)
	}
	return r, r.seen()
}
