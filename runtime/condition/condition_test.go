package condition

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
)

func binding(policy string, expressions ...string) *builtins.AdmissionBinding {
	b := &builtins.AdmissionBinding{FailurePolicy: policy}
	for i, e := range expressions {
		b.Conditions = append(b.Conditions, builtins.MatchCondition{Name: string(rune('a' + i)), Expression: e})
	}
	return b
}

func TestMatch(t *testing.T) {
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "labels": map[string]any{"app": "web"}}, "spec": map[string]any{"priority": int64(7)}}
	create := builtins.Review{Operation: "CREATE", APIVersion: "v1", Kind: "Pod", Resource: "pods", Namespace: "shop", Name: "p", Object: pod,
		User: builtins.ReviewUser{Name: "ann", Groups: []string{"dev"}, Extra: map[string][]string{"team": {"x"}}}}
	remove := create
	remove.Operation, remove.Object, remove.OldObject = "DELETE", nil, pod
	for _, c := range []struct {
		review builtins.Review
		policy string
		when   []string
		want   bool
		err    string
	}{
		{create, "Fail", nil, true, ""},
		{create, "Fail", []string{"true", "object.metadata.labels['app'] == 'web'", "object.spec.priority > 6"}, true, ""},
		{create, "Fail", []string{"true", "object.metadata.name.startsWith('q')"}, false, ""},
		{create, "Fail", []string{"request.userInfo.username == 'ann' && 'dev' in request.userInfo.groups && request.userInfo.extra['team'] == ['x']"}, true, ""},
		{create, "Fail", []string{"request.resource.resource == 'pods' && request.kind.kind == 'Pod' && request.namespace == 'shop' && request.operation == 'CREATE'"}, true, ""},
		{create, "Fail", []string{"oldObject == null && !request.dryRun"}, true, ""},
		{remove, "Fail", []string{"object == null && oldObject.metadata.name == 'p' && request.operation == 'DELETE'"}, true, ""},
		{create, "Fail", []string{"authorizer.group('').resource('secrets').check('get').allowed()"}, true, ""},
		// A field that is not there: the policy decides, but what does not hold counts first.
		{create, "Fail", []string{"object.spec.nodeName == 'n'"}, false, "no such key: nodeName"},
		{create, "Ignore", []string{"object.spec.nodeName == 'n'"}, false, ""},
		{create, "Fail", []string{"object.spec.nodeName == 'n'", "false"}, false, ""},
	} {
		var compiler Compiler
		conditions, err := compiler.Compile(binding(c.policy, c.when...))
		if err != nil {
			t.Errorf("%v: %v", c.when, err)
			continue
		}
		got, err := conditions.Match(t.Context(), &c.review)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: got %v, %v", c.when, got, err)
		}
	}
}

func TestBrokenConditions(t *testing.T) {
	var compiler Compiler
	for expression, want := range map[string]string{
		"objekt.metadata.name == 'x'":   `match_conditions: "b": undeclared reference to 'objekt' (character 1)`,
		"object.metadata.name":          `match_conditions: "b": must evaluate to bool but got dyn`,
		"true &&\n  request.usr == 'x'": `match_conditions: "b": undefined field 'usr' (line 2, character 10)`,
		"1 +":                           `match_conditions: "b": Syntax error: mismatched input '<EOF>'`,
	} {
		if _, err := compiler.Compile(binding("Fail", "true", expression)); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}

func BenchmarkFirstCondition(b *testing.B) {
	for b.Loop() {
		var compiler Compiler
		if _, err := compiler.Compile(binding("Fail", "true")); err != nil {
			b.Fatal(err)
		}
	}
}
