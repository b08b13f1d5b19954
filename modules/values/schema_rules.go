package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/starling-operator/starling/runtime/message"
)

// brokenRules compiles the rules of a schema, so that a broken one is found when
// the schema is read and not when values are.
func brokenRules(s *structural.Structural, path string) (errs []string) {
	if s == nil {
		return nil
	}
	where := strings.TrimPrefix(path+": ", ": ") + ownRules
	var results []cel.CompilationResult
	if len(s.XValidations) > 0 {
		var err error
		if results, err = cel.Compile(s, model.SchemaDeclType(s, false), celconfig.PerCallLimit,
			environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader()); err != nil {
			errs = append(errs, where+": "+message.Line(err.Error()))
		}
	}
	for i, r := range results {
		if r.Error != nil {
			errs = append(errs, fmt.Sprintf("%s: rule %q: %s", where, s.XValidations[i].Rule, message.Line(r.Error.Error())))
		}
		if r.MessageExpressionError != nil {
			errs = append(errs, fmt.Sprintf("%s: messageExpression %q: %s", where,
				s.XValidations[i].MessageExpression, message.Line(r.MessageExpressionError.Error())))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Properties)) {
		errs = append(errs, brokenRules(fieldOf(s, k), joinKey(path, k))...)
	}
	errs = append(errs, brokenRules(s.Items, path+"[*]")...)
	if s.AdditionalProperties != nil {
		errs = append(errs, brokenRules(s.AdditionalProperties.Structural, path+"[*]")...)
	}
	return errs
}
