package values

import (
	"fmt"
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/starling-operator/starling/runtime/message"
)

// brokenRules compiles the rules of a schema, so that a broken one is found when
// the schema is read and not when values are.
func brokenRules(s *structural.Structural) []string {
	var errs []string
	eachRules(s, "", func(path string, n *structural.Structural) {
		where := "x-kubernetes-validations"
		if path != "" {
			where = path + ": " + where
		}
		results, err := cel.Compile(n, model.SchemaDeclType(n, false), celconfig.PerCallLimit,
			environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		if err != nil {
			errs = append(errs, where+": "+message.Line(err.Error()))
			return
		}
		for i, r := range results {
			if r.Error != nil {
				errs = append(errs, fmt.Sprintf("%s: rule %q: %s", where, n.XValidations[i].Rule, message.Line(r.Error.Error())))
			}
			if r.MessageExpressionError != nil {
				errs = append(errs, fmt.Sprintf("%s: messageExpression %q: %s", where,
					n.XValidations[i].MessageExpression, message.Line(r.MessageExpressionError.Error())))
			}
		}
	})
	return errs
}

// eachRules calls f for every part of the schema that has rules.
func eachRules(s *structural.Structural, path string, f func(string, *structural.Structural)) {
	if s == nil {
		return
	}
	if len(s.XValidations) > 0 {
		f(path, s)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[k]
		eachRules(&p, joinKey(path, k), f)
	}
	eachRules(s.Items, path+"[*]", f)
	if s.AdditionalProperties != nil {
		eachRules(s.AdditionalProperties.Structural, path+"[*]", f)
	}
}
