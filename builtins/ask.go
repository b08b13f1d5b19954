package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Questions to the API server that RBAC calls a create: who may do something, whose a token is, a token.
// Nothing is kept of them, so they are reads.

// questions are the kinds that the API server answers and does not keep, by their groups. Those with true
// are in namespaces.
var questions = map[string]map[string]bool{
	"authentication.k8s.io": {"SelfSubjectReview": false, "TokenReview": false},
	"authorization.k8s.io":  {"LocalSubjectAccessReview": true, "SelfSubjectAccessReview": false, "SelfSubjectRulesReview": false, "SubjectAccessReview": false},
}

// Lifetimes of tokens that API servers give.
const (
	minTokenLife = 10 * time.Minute
	maxTokenLife = 1 << 32 * time.Second
)

func askSpecs() []spec.Spec {
	dflt := spec.Keyword("default", spec.Any, "None")
	return []spec.Spec{
		declare("k8s.ask", spec.InRun|spec.InReview, spec.Reads, callAsk, spec.Required("obj", spec.Dict), dflt),
		declare("k8s.token", spec.InRun|spec.InReview, spec.Reads, callToken,
			spec.Required("service_account", spec.String), spec.Keyword("namespace", spec.String, "None"),
			spec.Keyword("audiences", spec.Strings, "[]"), spec.Keyword("expires", spec.Duration, `"1h"`), dflt),
	}
}

func callAsk(c *call) (starlark.Value, error) {
	if err := openIdentity(c.Arg("obj")); err != nil {
		return nil, fmt.Errorf("obj: %w", err)
	}
	plain, err := object.ToPlainAt(c.Arg("obj"), []string{"obj"})
	if err != nil {
		return nil, err
	}
	q := effect.Ask{Object: plain.(map[string]any)} // as its type was checked
	q.Ref.APIVersion, _ = q.Object["apiVersion"].(string)
	q.Ref.Kind, _ = q.Object["kind"].(string)
	namespaced, known := questions[effect.GroupOf(q.Ref.APIVersion)][q.Ref.Kind]
	if !known {
		return nil, fmt.Errorf("obj: %s is no question that the API server answers and does not keep; it takes %s", spec.Clip(q.Ref.APIVersion+" "+q.Ref.Kind), kindsOfQuestions())
	}
	metadata, _ := q.Object["metadata"].(map[string]any)
	if namespaced {
		q.Ref.Namespace, _ = metadata["namespace"].(string)
		q.Ref.Namespace = cmp.Or(q.Ref.Namespace, c.run.Namespace)
		if err := spec.DNSLabel(q.Ref.Namespace, 63); err != nil {
			return nil, fmt.Errorf("obj: metadata.namespace: %w", err)
		}
		q.Object["metadata"] = map[string]any{"namespace": q.Ref.Namespace}
	} else {
		delete(q.Object, "metadata")
	}
	if guard, err := c.guard("create", "ask", q.Ref, namespaced, nil); err != nil || guard != nil {
		if guard != nil {
			err = spec.Finalf("%s", guard.Refused) // a question has no labels
		}
		return nil, err
	}
	status, err := c.ask(q)
	if err != nil || status == nil {
		return c.Arg("default"), err
	}
	return object.New(status), nil
}

func kindsOfQuestions() string {
	var all []string
	for _, kinds := range questions {
		for kind := range kinds {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ") + "; k8s.token asks for a token"
}

func callToken(c *call) (starlark.Value, error) {
	ref, namespaced, err := c.ref(effect.Ref{APIVersion: "v1", Kind: "ServiceAccount", Name: c.Str("service_account"), Namespace: c.Str("namespace")})
	if err != nil {
		return nil, err
	}
	life := c.DurationOr("expires", time.Hour)
	if life < minTokenLife || life > maxTokenLife || life%time.Second != 0 {
		return nil, fmt.Errorf("expires: %s is no number of whole seconds from %s on", life, minTokenLife)
	}
	guard, err := c.guard("token", "ask for a token of", ref, namespaced, nil)
	switch {
	case err != nil:
		return nil, err
	case !c.run.Free && c.run.Instance.Namespace == ref.Namespace:
		return nil, c.notCovered("ask for a token of", ref)
	case c.run.Reader == nil:
		return nil, errors.New("the cluster cannot be read here")
	}
	if guard != nil {
		m, err := c.run.Reader.Get(c.run.context(), ref)
		switch {
		case err != nil:
			return nil, err
		case m == nil:
			return nil, fmt.Errorf("%s is not there", ref)
		case !guard.Passes(c.run.Seal, ref, m):
			return nil, spec.Finalf("%s", guard.Refused)
		}
	}
	spec := map[string]any{"expirationSeconds": int64(life / time.Second)}
	if audiences := c.Strings("audiences"); len(audiences) > 0 {
		list := make([]any, len(audiences))
		for i, a := range audiences {
			list[i] = a
		}
		spec["audiences"] = list
	}
	status, err := c.ask(effect.Ask{Ref: ref, Subresource: "token", Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}})
	if err != nil || status == nil {
		return c.Arg("default"), err
	}
	token, _ := status["token"].(string)
	if token == "" {
		return nil, fmt.Errorf("%s: the answer holds no token", ref)
	}
	return object.NewSecret(token), nil
}

// ask has a question answered; nil: nobody answers, and default= holds.
func (c *call) ask(q effect.Ask) (map[string]any, error) {
	status, err := c.answerer().Ask(c.run.context(), q)
	switch {
	case err != nil && c.Arg("default") != nil && Unanswered(err):
		return nil, nil
	case err != nil:
		return nil, err
	case status == nil:
		return nil, fmt.Errorf("%s: the answer has no status", q)
	}
	return status, c.Room(object.PlainSize(status))
}
