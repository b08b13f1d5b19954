package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/definition"
	"github.com/starling-operator/starling/runtime/message"
)

// The rules of CustomResourceDefinitions, as the API server looks at them when it gets one: its own
// check of definitions would bring a gRPC client along.

// The API server lets a rule, and all rules of a schema together, cost so much by its own estimate.
const (
	maxRuleCost  = 10_000_000
	maxRulesCost = 100_000_000
)

// schemasOf says what is wrong with the schemas in a file of definitions.
func schemasOf(ctx context.Context, f tree.File) (out []string) {
	found, err := readObjects(f.Data)
	if err != nil {
		return nil // CheckCRDs says so
	}
	for _, obj := range found {
		data, err := json.Marshal(obj)
		var crd apiextensionsv1.CustomResourceDefinition
		if err != nil || json.Unmarshal(data, &crd) != nil {
			continue
		}
		for _, v := range crd.Spec.Versions {
			for _, problem := range schemaProblems(ctx, v.Schema) {
				out = append(out, fmt.Sprintf("%s %s: %s", crd.Name, v.Name, problem))
			}
		}
	}
	return out
}

// schemaProblems says why the API server refuses the schema of a version. Without rules and defaults
// nothing is looked at.
func schemaProblems(ctx context.Context, v *apiextensionsv1.CustomResourceValidation) []string {
	if v == nil || v.OpenAPIV3Schema == nil {
		return nil
	}
	s, _, err := definition.Structural(v)
	if err != nil {
		return []string{err.Error()}
	}
	one := uint64(1)
	r := &ruleReader{}
	r.walk(s, spot{root: true, times: &one})
	if len(r.problems) == 0 && r.cost > maxRulesCost {
		r.problems = append(r.problems, "its rules together cost more than the API server allows: "+bound)
	}
	if len(r.problems) > 0 {
		return r.problems
	}
	errs, err := defaulting.ValidateDefaults(ctx, nil, s, true, true)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range errs {
		r.problems = append(r.problems, plainPath.Replace(e.Field)+": "+e.ErrorBody())
	}
	return r.problems
}

// bound is the way to cheaper rules.
const bound = "bound the lists, dicts and texts that they read, with max or maxItems, maxProperties and maxLength"

// plainPath makes paths of a schema those of an object.
var plainPath = strings.NewReplacer("<nil>.", "", "properties[", "", "].", ".", "]", "")

// ruleReader compiles the rules of a schema.
type ruleReader struct {
	problems []string
	cost     uint64 // of all rules
}

// spot is where a part of a schema stands.
type spot struct {
	path string
	root bool
	// times is how many values of it an object can have at most; nil: nobody says.
	times *uint64
	// atomic is the path of the list or dict that is owned as a whole, so that the value of before is
	// not known here; "" for none.
	atomic string
}

func (r *ruleReader) walk(s *structural.Structural, at spot) {
	if s == nil {
		return
	}
	r.rules(s, at)
	below := func(name string, times *int64, whole bool) spot {
		next := spot{path: at.path + name, atomic: at.atomic}
		if at.path == "" {
			next.path = strings.TrimPrefix(name, ".")
		}
		if times != nil && at.times != nil {
			n := product(*at.times, uint64(max(*times, 0)))
			next.times = &n
		}
		if whole && next.atomic == "" {
			next.atomic = at.path
		}
		return next
	}
	var bounds structural.ValueValidation
	if s.ValueValidation != nil {
		bounds = *s.ValueValidation
	}
	one := int64(1)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		r.walk(&p, below("."+name, &one, !cel.MapIsCorrelatable(s.XMapType)))
	}
	r.walk(s.Items, below("[]", bounds.MaxItems, s.XListType == nil || *s.XListType != "map"))
	if s.AdditionalProperties != nil {
		r.walk(s.AdditionalProperties.Structural, below(".*", bounds.MaxProperties, !cel.MapIsCorrelatable(s.XMapType)))
	}
}

// rules compiles the rules of one part.
func (r *ruleReader) rules(s *structural.Structural, at spot) {
	if len(s.XValidations) == 0 {
		return
	}
	say := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if at.path != "" {
			text = at.path + ": " + text
		}
		r.problems = append(r.problems, text)
	}
	results, err := cel.Compile(s, model.SchemaDeclType(s, at.root || s.XEmbeddedResource), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
	if err != nil {
		say("its rules cannot be compiled: %v", err)
		return
	}
	for i, result := range results {
		rule := s.XValidations[i]
		times := result.MaxCardinality
		if at.times != nil {
			times = *at.times
		}
		cost := product(result.MaxCost, times)
		r.cost = sum(r.cost, cost)
		switch {
		case result.Error != nil:
			say("rule %q: %s", rule.Rule, firstLine(result.Error.Detail))
		case result.MessageExpressionError != nil:
			say("messageExpression %q: %s", rule.MessageExpression, firstLine(result.MessageExpressionError.Detail))
		case result.UsesOldSelf && at.atomic != "":
			say("rule %q: the value of before is not known inside of %s, which is owned as a whole; give it keys", rule.Rule, at.atomic)
		case cost > maxRuleCost:
			say("rule %q costs more than the API server allows, %s: %s", rule.Rule, timesMore(cost), bound)
		}
	}
}

// timesMore says how far a cost is above that of one rule.
func timesMore(cost uint64) string {
	if cost > 100*maxRuleCost {
		return "more than 100 times as much"
	}
	return fmt.Sprintf("%.1f times as much", float64(cost)/maxRuleCost)
}

// firstLine is the first line of what the compiler says, which goes on with a picture of the rule.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(text, "compilation failed: "), "\n")
	return message.Line(strings.TrimPrefix(first, "ERROR: <input>:"))
}

// product and sum stay at the greatest number.
func product(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

func sum(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
