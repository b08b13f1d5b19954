package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/condition"
	"github.com/starling-operator/starling/runtime/effect"
)

const modulesConfiguration = "ns.starling.modules"

// Module objects are reviewed while a hook is asked, or the server is asked for; another process
// writes nothing, and one without Module objects takes the configuration away.
func TestModuleObjectsAreReviewed(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": strings.Split(twoHooks, "hook(on")[0]})
	check := func(o *Options) {
		o.CheckModule = func(context.Context, map[string]any) (string, error) { return "", nil }
	}
	hook := w.gen.Hook("web/hooks/a.star:f")
	scale := objectName("ns.starling", hook, &hook.Bindings[1])
	w.run(check)
	w.serve("web", true)
	w.eventually("registered", w.hasAll(validating, scale, modulesConfiguration))
	if !(effect.Instance{Namespace: "ns", Name: "starling"}).Owns(effect.Ref{APIVersion: registration, Kind: kindValidating, Name: modulesConfiguration}) {
		t.Error("the configuration is not seen as Starling's own")
	}
	text := fmt.Sprint(w.api.Object(registration, kindValidating, "", modulesConfiguration)["webhooks"])
	for _, want := range []string{"failurePolicy:Ignore", "timeoutSeconds:3", "path:/modules", `"ns/starling"`, `"ns.starling"`, "resources:[modules]"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	w.stop()

	before := len(writes(w.api))
	w.run(check)
	w.serve("web", true)
	w.api.Remove(registration, kindValidating, "", validating)
	w.eventually("mended", w.hasAll(validating, scale, modulesConfiguration))
	if after := writes(w.api)[before:]; len(after) != 1 {
		t.Errorf("it has written %v", after)
	}
	w.serve("web", false)
	w.eventually("nothing is registered while no hook is asked", w.hasAll())
	w.serve("web", true)
	w.eventually("registered again", w.hasAll(validating, scale, modulesConfiguration))
	w.stop()

	w.run()
	w.serve("web", true)
	w.eventually("gone with Module objects", w.hasAll(validating, scale))
	w.stop()

	w.run(check, func(o *Options) { o.Always = true })
	w.serve("web", false)
	w.eventually("it is there without hooks", w.hasAll(modulesConfiguration))
}

// hasAll is hasNames in any order.
func (w *world) hasAll(want ...string) func() error {
	slices.Sort(want)
	return func() error {
		if got := slices.Sorted(slices.Values(w.names())); !slices.Equal(got, want) {
			return fmt.Errorf("there are %q, want %q", got, want)
		}
		return nil
	}
}

// The conditions compile, and choose changes of spec.values of this instance's objects.
func TestWhichModuleObjectsAreReviewed(t *testing.T) {
	obj := shape{instance: "ns.starling"}.modules(effect.Instance{Namespace: "ns", Name: "starling"})
	a := &builtins.AdmissionBinding{FailurePolicy: "Ignore"}
	for _, c := range obj["webhooks"].([]any)[0].(map[string]any)["matchConditions"].([]any) {
		c := c.(map[string]any)
		a.Conditions = append(a.Conditions, builtins.MatchCondition{Name: c["name"].(string), Expression: c["expression"].(string)})
	}
	conditions, err := new(condition.Compiler).Compile(a)
	if err != nil {
		t.Fatal(err)
	}
	ours, others := map[string]any{"starling.dev/instance": "ns.starling"}, map[string]any{"starling.dev/instance": "ns.other"}
	one, two := map[string]any{"values": map[string]any{"a": int64(1)}}, map[string]any{"values": map[string]any{"a": int64(2)}}
	for name, tt := range map[string]struct {
		labels, old, spec map[string]any
		want              bool
	}{
		"made":                  {ours, nil, one, true},
		"made without labels":   {nil, nil, one, false},
		"without a spec":        {ours, nil, nil, false},
		"without values":        {ours, nil, map[string]any{"paused": true}, false},
		"other values":          {ours, two, one, true},
		"the same values":       {ours, one, one, false},
		"first values":          {ours, map[string]any{"paused": true}, one, true},
		"of another instance":   {others, nil, one, false},
		"chosen by its spec":    {nil, nil, map[string]any{"instance": "ns/starling", "values": one["values"]}, true},
		"given away":            {ours, two, map[string]any{"instance": "ns/other", "values": one["values"]}, false},
		"taken over from other": {others, two, map[string]any{"instance": "ns/starling", "values": one["values"]}, true},
	} {
		of := func(spec map[string]any) map[string]any {
			metadata := map[string]any{"name": "web"}
			if tt.labels != nil {
				metadata["labels"] = tt.labels
			}
			out := map[string]any{"apiVersion": "starling.dev/v1alpha1", "kind": "Module", "metadata": metadata}
			if spec != nil {
				out["spec"] = spec
			}
			return out
		}
		r := &builtins.Review{Operation: "CREATE", APIVersion: "starling.dev/v1alpha1", Kind: "Module", Resource: "modules", Name: "web", Object: of(tt.spec)}
		if tt.old != nil {
			r.Operation, r.OldObject = "UPDATE", of(tt.old)
		}
		if got, err := conditions.Match(t.Context(), r); err != nil || got != tt.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

func TestAnswersAboutModuleObjects(t *testing.T) {
	s := newTestServer(t, nil)
	s.checkModule = func(_ context.Context, object map[string]any) (string, error) {
		switch spec := object["spec"].(map[string]any); spec["replicas"] {
		case int64(1):
			return "", nil
		case int64(2):
			return "", errors.New("the engine is busy")
		}
		return "Module web: replicas: no", nil
	}
	body := func(n string) []byte { return []byte(strings.Replace(reviewBody, "9007199254740993", n, 1)) }
	to := route{hook: modulesHook, modules: true}
	if result, answer, err := s.review(t.Context(), to, body("1")); err != nil || result != "allowed" {
		t.Errorf("%s %s %v", result, answer, err)
	}
	if result, answer, err := s.review(t.Context(), to, body("3")); err != nil || result != "denied" || !strings.Contains(string(answer), `"message":"Module web: replicas: no","reason":"Invalid","code":422`) {
		t.Errorf("%s %s %v", result, answer, err)
	}
	if _, _, err := s.review(t.Context(), to, body("2")); err == nil {
		t.Error("an error is an answer")
	}
}
