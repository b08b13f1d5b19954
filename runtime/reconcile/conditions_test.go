package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestConditions(t *testing.T) {
	id := ID{Ref: effect.Ref{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}}
	parts := []Part{{Name: "web", ID: id, Digest: "1"}}
	with := func(edit func(*Child)) []Child {
		c := Child{ID: id, UID: "u", Digest: "1", Ready: true}
		edit(&c)
		return []Child{c}
	}
	fine := with(func(*Child) {})
	for name, test := range map[string]struct {
		look Look
		want string // Ready, reason, what else is True, message
	}{
		"paused":           {Look{Paused: "by hand", Failed: "boom"}, "False Paused - by hand"},
		"stalled":          {Look{Stalled: "no such tier"}, "False Stalled Stalled no such tier"},
		"fails":            {Look{Failed: "boom", Tries: 1}, "False Failing Reconciling boom"},
		"fails for long":   {Look{Failed: "boom", Tries: 5}, "False Failing Stalled boom"},
		"fails for good":   {Look{Failed: "boom", Tries: 1, Final: true}, "False Failing Stalled boom"},
		"not known":        {Look{Parts: parts, Children: fine, Unsure: "nobody knows"}, "Unknown Progressing Reconciling nobody knows"},
		"waits":            {Look{Hold: true, Waiting: "a host"}, "Unknown Waiting Reconciling waits for a host"},
		"not now":          {Look{Hold: true}, "Unknown Waiting Reconciling its controller has answered None: not now"},
		"nothing":          {Look{}, "True Ready - all children are as they should be"},
		"all is well":      {Look{Parts: parts, Children: fine}, "True Ready - all children are as they should be"},
		"it is made":       {Look{Parts: parts}, "Unknown Progressing Reconciling create Service shop/web: it is not there"},
		"it is not ready":  {Look{Parts: parts, Children: with(func(c *Child) { c.Ready, c.Reason = false, "no address" })}, "Unknown Progressing Reconciling Service shop/web is not ready: no address"},
		"no reason":        {Look{Parts: parts, Children: with(func(c *Child) { c.Ready = false })}, "Unknown Progressing Reconciling Service shop/web is not ready"},
		"it is another's":  {Look{Parts: parts, Children: with(func(c *Child) { c.Foreign = "kubectl" })}, "False ForeignObject Stalled hold Service shop/web: it belongs to kubectl, and is left alone"},
		"it is put back":   {Look{Parts: parts, Children: with(func(c *Child) { c.Changed = "kubectl" })}, "True Ready - all children are as they should be"},
		"later":            {Look{Parts: parts, Children: with(func(c *Child) { c.Changed, c.Held = "kubectl", "soon" })}, "True Ready - all children are as they should be"},
		"it stays changed": {Look{Parts: parts, Children: with(func(c *Child) { c.Changed, c.Held, c.Reported = "kubectl", "kubectl has changed it", true })}, "True Drifted - Service shop/web: kubectl has changed it"},
		"it is contested":  {Look{Parts: parts, Children: with(func(c *Child) { c.Contested = "argo" })}, "False Contested Stalled Service shop/web is contested by argo: it is put right again and again, and later each time"},
		"one is retained":  {Look{Children: with(func(c *Child) { c.Retain = true })}, "True Ready - all children are as they should be"},
		"one goes":         {Look{Children: fine}, "Unknown Progressing Reconciling delete Service shop/web: no part wants it"},
		"one is going":     {Look{Children: with(func(c *Child) { c.Deleting = true })}, "Unknown Progressing Reconciling wait Service shop/web: it is being deleted"},
		"another state":    {Look{Parts: parts, Children: with(func(c *Child) { c.Digest = "0" })}, "Unknown Progressing Reconciling apply Service shop/web: it is wanted in another state"},
		"others come late": {Look{Parts: append([]Part{{Name: "b", ID: ID{Ref: effect.Ref{APIVersion: "v1", Kind: "Secret", Name: "b"}}, After: []string{"web"}}}, parts...), Children: with(func(c *Child) { c.Ready, c.Reason = false, "no address" })}, "Unknown Progressing Reconciling Service shop/web is not ready: no address"},
	} {
		actions, err := Actions(Wanted{Parts: test.look.Parts}, Inventory{Children: test.look.Children})
		if err != nil {
			t.Fatal(err)
		}
		test.look.Actions = actions
		got := Conditions(test.look)
		holds := "-"
		for i, kind := range []string{"Ready", "Reconciling", "Stalled"} {
			c := got[i]
			if c.Type != kind || c.Reason != got[0].Reason {
				t.Errorf("%s: condition %d is %+v", name, i, c)
			}
			if i > 0 && c.Status == "True" {
				holds = kind
			}
		}
		if text := fmt.Sprint(got[0].Status, " ", got[0].Reason, " ", holds, " ", got[0].Message); text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
		if holds != "-" && !strings.Contains(fmt.Sprint(got[1:]), got[0].Message) {
			t.Errorf("%s: %s has no message", name, holds)
		}
	}
}

// A look follows what is made, changed and deleted, and none what is put back.
func TestMoves(t *testing.T) {
	id := ID{Ref: effect.Ref{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}}
	for op, want := range map[Op]bool{OpCreate: true, OpApply: true, OpDelete: true, OpWait: false, OpHold: false} {
		look := Look{Actions: []Action{{Op: op, ID: id}}}
		if look.Moves() != want {
			t.Errorf("%s: %t", op, !want)
		}
	}
	put := Look{Actions: []Action{{Op: OpApply, ID: id}}, Children: []Child{{ID: id, Changed: "kubectl"}}}
	if put.Moves() {
		t.Error("what is put back moves")
	}
}
