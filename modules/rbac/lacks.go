package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/starling-operator/starling/runtime/cluster"
)

// asked is how many questions about rights are on their way at once.
const asked = 16

// Lacks says which rights are not there: may answers for each. One line for each rule, in the order in which the roles
// are printed.
func (r Result) Lacks(ctx context.Context, may func(context.Context, cluster.Right) (bool, error)) ([]string, error) {
	type question struct {
		right   cluster.Right
		allowed bool
		err     error
	}
	type ruleOf struct {
		role Role
		rule Rule
		all  []question
	}
	var rules []*ruleOf
	slots := make(chan struct{}, asked)
	var busy sync.WaitGroup
	for _, role := range r.Roles {
		for _, rule := range role.Rules {
			of := &ruleOf{role: role, rule: rule}
			for _, verb := range rule.Verbs {
				for _, name := range append(slices.Clone(rule.Names), "")[:max(1, len(rule.Names))] {
					of.all = append(of.all, question{right: cluster.Right{Namespace: role.Namespace, Group: rule.Group, Resource: rule.Resource, Name: name, URL: rule.URL, Verb: verb}})
				}
			}
			for i := range of.all {
				slots <- struct{}{}
				busy.Go(func() {
					defer func() { <-slots }()
					q := &of.all[i]
					q.allowed, q.err = may(ctx, q.right)
				})
			}
			rules = append(rules, of)
		}
	}
	busy.Wait()
	var out []string
	for _, of := range rules {
		var verbs, names []string
		for _, q := range of.all {
			if q.err != nil {
				return nil, q.err
			}
			if !q.allowed {
				verbs, names = append(verbs, q.right.Verb), append(names, q.right.Name)
			}
		}
		if len(verbs) > 0 {
			out = append(out, lackOf(of.role, of.rule, verbs, sorted(names)))
		}
	}
	return out, nil
}

// lackOf is a line such as "create, patch poddisruptionbudgets.policy in namespace web (chart of web)".
func lackOf(role Role, rule Rule, verbs, names []string) string {
	what, where := rule.Resource, "in namespace "+role.Namespace
	switch {
	case rule.URL != "":
		what = rule.URL
	case rule.Group != "":
		resource, sub, is := strings.Cut(rule.Resource, "/")
		if what = resource + "." + rule.Group; is {
			what += "/" + sub
		}
	}
	if rule.Names != nil {
		what += " " + strings.Join(names, ", ")
	}
	if role.Namespace == "" {
		where = "in the whole cluster"
	}
	slices.Sort(verbs)
	return plain(fmt.Sprintf("%s %s %s (%s)", strings.Join(slices.Compact(verbs), ", "), what, where, strings.Join(short(rule.Why), "; ")))
}
