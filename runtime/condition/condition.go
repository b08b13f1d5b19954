// Package condition compiles the CEL conditions of reviews (match_conditions=) with the
// API server's own code, and evaluates them where there is no API server: in tests.
package condition

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/starling-operator/starling/builtins"
)

// Compiler compiles conditions. The zero value is ready, and safe for concurrent use;
// what it needs is made once, for the first condition.
type Compiler struct {
	once     sync.Once
	compiler cel.ConditionCompiler
}

// Conditions are the compiled conditions of one binding.
type Conditions struct{ matcher matchconditions.Matcher }

// Compile compiles the conditions of a binding. The error names the first that is
// broken, and where in the expression.
func (c *Compiler) Compile(b *builtins.AdmissionBinding) (*Conditions, error) {
	c.once.Do(func() {
		c.compiler = cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	})
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var all []cel.ExpressionAccessor
	for _, one := range b.Conditions {
		accessor := &matchconditions.MatchCondition{Name: one.Name, Expression: one.Expression}
		evaluator := c.compiler.CompileCondition([]cel.ExpressionAccessor{accessor}, options, environment.NewExpressions)
		if broken := evaluator.CompilationErrors(); len(broken) > 0 {
			return nil, fmt.Errorf("match_conditions: %q: %s", one.Name, plain(broken[0].Error()))
		}
		all = append(all, accessor)
	}
	policy := admissionv1.FailurePolicyType(b.FailurePolicy)
	evaluator := c.compiler.CompileCondition(all, options, environment.NewExpressions)
	return &Conditions{matchconditions.NewMatcher(evaluator, &policy, "webhook", "validating", "test")}, nil
}

var place = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): ([^\n]*)`)

// plain is the first line of what the compiler says.
func plain(text string) string {
	if m := place.FindStringSubmatch(text); m != nil {
		at := "character " + m[2]
		if m[1] != "1" {
			at = "line " + m[1] + ", " + at
		}
		return fmt.Sprintf("%s (%s)", strings.TrimSuffix(m[3], " (in container '')"), at)
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "compilation failed: "), "\n")
	return text
}

// Match says whether all conditions hold. An error is one of the evaluation, with the
// policy Fail only: with Ignore such a condition does not hold. An authorizer in a
// condition allows everything.
func (c *Conditions) Match(ctx context.Context, r *builtins.Review) (bool, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil {
		return false, err
	}
	kind, resource := gv.WithKind(r.Kind), gv.WithResource(r.Resource)
	extra := map[string][]string{}
	maps.Copy(extra, r.User.Extra)
	attributes := admission.NewAttributesRecord(object(r.Object), object(r.OldObject), kind, r.Namespace, r.Name, resource, r.Subresource,
		admission.Operation(r.Operation), object(r.Options), r.DryRun, &user.DefaultInfo{Name: r.User.Name, UID: r.User.UID, Groups: r.User.Groups, Extra: extra})
	result := c.matcher.Match(ctx, &admission.VersionedAttributes{
		Attributes: attributes, VersionedObject: admission.NewLazyObject(object(r.Object)), VersionedOldObject: admission.NewLazyObject(object(r.OldObject)), VersionedKind: kind,
	}, nil, authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	}))
	return result.Matches, result.Error
}

// object is nil, not a pointer that is nil, without an object.
func object(m map[string]any) runtime.Object {
	if m == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: m}
}
