package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func deployment(name string) ID {
	return ID{Ref: effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}}
}

func fields(name string) ID {
	return ID{Ref: deployment(name).Ref, Fields: true, Subresource: "scale"}
}

// wants is a part that is wanted in its second state.
func wants(name string, change ...func(*Part)) Part {
	p := Part{Name: name, ID: deployment(name), Digest: name + " 2"}
	for _, c := range change {
		c(&p)
	}
	return p
}

// has is a child that is as wanted: written, and ready.
func has(name string, change ...func(*Child)) Child {
	c := Child{ID: deployment(name), UID: "uid of " + name, Digest: name + " 2", Ready: true}
	for _, ch := range change {
		ch(&c)
	}
	return c
}

func after(names ...string) func(*Part)    { return func(p *Part) { p.After = names } }
func update(u Update) func(*Part)          { return func(p *Part) { p.Update = u } }
func retained(p *Part)                     { p.Retain = true }
func ofFields(p *Part)                     { p.ID = fields(p.Name) }
func rolls(rank int) func(*Part)           { return func(p *Part) { p.Rolling, p.Rank = "pods", rank } }
func outdated(c *Child)                    { c.Digest = strings.TrimSuffix(c.Digest, "2") + "1" }
func unready(reason string) func(*Child)   { return func(c *Child) { c.Ready, c.Reason = false, reason } }
func deleting(c *Child)                    { c.Deleting = true }
func retains(c *Child)                     { c.Retain = true }
func layer(n int) func(*Child)             { return func(c *Child) { c.Layer = n } }
func foreign(by string) func(*Child)       { return func(c *Child) { c.Foreign, c.Digest = by, "" } }
func adopted(c *Child)                     { c.Adopt = true }
func hasFields(c *Child)                   { c.ID = fields(c.Name) }
func changed(by, held string) func(*Child) { return func(c *Child) { c.Changed, c.Held = by, held } }

func failed(name, reason string, due bool) Failure {
	return Failure{ID: deployment(name), Digest: name + " 2", Reason: reason, Due: due}
}

// shown are actions in short, one a line.
func shown(actions []Action) string {
	var b strings.Builder
	for _, a := range actions {
		b.WriteString(strings.ReplaceAll(a.String(), "Deployment shop/", "") + "\n")
	}
	return b.String()
}

func TestActions(t *testing.T) {
	chain := []Part{wants("c", after("b")), wants("b", after("a")), wants("a")}
	for _, test := range []struct {
		name     string
		parts    []Part
		children []Child
		failures []Failure
		unsynced []Kind
		unknown  string
		want     string
	}{
		{name: "nothing is wanted, and nothing is there"},
		{name: "all is as wanted", parts: []Part{wants("a"), wants("b")}, children: []Child{has("a"), has("b", unready("0 of 1"))}},
		{name: "siblings go side by side", parts: []Part{wants("b"), wants("a")},
			want: "create b: it is not there\ncreate a: it is not there\n"},
		{name: "another version of the API is the same object", parts: []Part{wants("a")},
			children: []Child{has("a", func(c *Child) { c.APIVersion = "apps/v1beta1" })}},

		{name: "those that come after others wait", parts: chain,
			want: "create a: it is not there\nwait b: it waits: a is not written yet\nwait c: it waits: a is not written yet\n"},
		{name: "until they are ready", parts: chain, children: []Child{has("a", unready("1 of 3 ready"))},
			want: "wait b: it waits: a is not ready: 1 of 3 ready\nwait c: it waits: a is not ready: 1 of 3 ready\n"},
		{name: "then the next one comes", parts: chain, children: []Child{has("a")},
			want: "create b: it is not there\nwait c: it waits: b is not written yet\n"},
		{name: "a new state waits, too", parts: []Part{wants("a"), wants("b", after("a"))},
			children: []Child{has("a", outdated), has("b", outdated, layer(1))},
			want:     "apply a: it is wanted in another state\nwait b: it waits: a is not written yet\n"},
		{name: "a repair does not", parts: []Part{wants("a"), wants("b", after("a"))},
			children: []Child{has("a", unready("")), has("b", layer(1), changed("kubectl-edit", ""))},
			want:     "apply b: kubectl-edit has changed it\n"},
		{name: "nobody has changed what the API server keeps in another form", parts: []Part{wants("a")},
			children: []Child{has("a", changed("somebody", ""), func(c *Child) { c.Unsure = true })},
			want:     "apply a: a value differs, which the API server may keep in another form: it is written once more\n"},
		{name: "nothing waits for that", parts: []Part{wants("a"), wants("b", after("a"))},
			children: []Child{has("a", changed("somebody", ""), func(c *Child) { c.Unsure = true }), has("c")},
			want:     "apply a: a value differs, which the API server may keep in another form: it is written once more\ncreate b: it is not there\nwait c: no part wants it, but b is not written yet\n"},
		{name: "one that is deleted by hand waits for those before it", parts: []Part{wants("a"), wants("b", after("a"))},
			children: []Child{has("a", unready(""))},
			want:     "wait b: it waits: a is not ready\n"},
		{name: "its layer is noted anew", parts: []Part{wants("a"), wants("b", after("a"))}, children: []Child{has("a"), has("b")},
			want: "apply b: what it notes of its order has changed\n"},
		{name: "whether it is retained, too", parts: []Part{wants("a", retained)}, children: []Child{has("a")},
			want: "apply a: what it notes of its order has changed\n"},

		{name: "a failure holds back only those after it", parts: []Part{wants("a"), wants("b", after("a")), wants("x"), wants("y", after("x"))},
			children: []Child{has("x")}, failures: []Failure{failed("a", "forbidden", false)},
			want: "hold a: forbidden\nwait b: it waits: a is not written: forbidden\ncreate y: it is not there\n"},
		{name: "the next try", parts: []Part{wants("a")}, failures: []Failure{failed("a", "forbidden", true)},
			want: "create a: it is not there\n"},
		{name: "a failure of another state does not count", parts: []Part{wants("a")},
			failures: []Failure{{ID: deployment("a"), Digest: "a 1", Reason: "forbidden"}}, want: "create a: it is not there\n"},
		{name: "a failure of one that is as wanted does not count", parts: []Part{wants("a")}, children: []Child{has("a")},
			failures: []Failure{failed("a", "forbidden", false)}},

		{name: "recreate applies first", parts: []Part{wants("a", update(UpdateRecreate))}, children: []Child{has("a", outdated)},
			want: "apply a: it is wanted in another state; it is made anew where the API server refuses that\n"},
		{name: "waits until it is gone", parts: []Part{wants("a", update(UpdateRecreate))}, children: []Child{has("a", outdated, deleting)},
			want: "wait a: it is being deleted\n"},
		{name: "a deletion that fails is tried again later", parts: []Part{wants("a", update(UpdateRecreate))}, children: []Child{has("a", outdated)},
			failures: []Failure{failed("a", "a webhook says no", false)}, want: "hold a: a webhook says no\n"},
		{name: "never leaves it alone", parts: []Part{wants("a", update(UpdateNever)), wants("b", after("a"))},
			children: []Child{has("a", outdated, changed("kubectl-edit", ""))}, want: "create b: it is not there\n"},
		{name: "never makes it", parts: []Part{wants("a", update(UpdateNever))}, want: "create a: it is not there\n"},

		{name: "drift that is held", parts: []Part{wants("a"), wants("b", after("a"))}, children: []Child{has("a", changed("hpa", "hpa contests it")), has("old")},
			want: "hold a: hpa contests it\ncreate b: it is not there\nwait old: no part wants it, but b is not written yet\n"},
		{name: "drift that is held keeps nothing", parts: []Part{wants("a")}, children: []Child{has("a", changed("hpa", "hpa contests it")), has("old")},
			want: "hold a: hpa contests it\ndelete old: no part wants it\n"},
		{name: "one that is being deleted", parts: []Part{wants("a")}, children: []Child{has("a", deleting)}, want: "wait a: it is being deleted\n"},
		{name: "one of somebody else", parts: []Part{wants("a"), wants("b", after("a"))}, children: []Child{has("a", foreign("kubectl"))},
			want: "hold a: it belongs to kubectl, and is left alone\nwait b: it waits: a is not written: it belongs to kubectl, and is left alone\n"},
		{name: "is adopted", parts: []Part{wants("a")}, children: []Child{has("a", foreign("kubectl"), adopted)},
			want: "apply a: it is taken over from kubectl\n"},
		{name: "and is not deleted", children: []Child{has("a", foreign("kubectl")), has("b", foreign("kubectl"), adopted)}},

		{name: "fields of an object that is not there", parts: []Part{wants("a", ofFields)}, want: "wait fields of a (scale): the object is not there\n"},
		{name: "fields", parts: []Part{wants("a", ofFields)}, children: []Child{has("a", hasFields, func(c *Child) { c.Digest = "" })},
			want: "apply fields of a (scale): it is wanted in another state\n"},
		{name: "fields are given back", children: []Child{has("a", hasFields), has("b", hasFields, func(c *Child) { c.Digest = "" })},
			want: "release fields of a (scale): no part wants it\n"},
		{name: "fields and the object are two children", parts: []Part{wants("a")}, children: []Child{has("a"), has("a", hasFields)},
			want: "release fields of a (scale): no part wants it\n"},
		{name: "fields of an object that is not there keep no child", parts: []Part{wants("a", ofFields)}, children: []Child{has("old"), has("b", hasFields)},
			want: "wait fields of a (scale): the object is not there\nrelease fields of b (scale): no part wants it\ndelete old: no part wants it\n"},
		{name: "those that somebody else has do", parts: []Part{wants("a", ofFields)}, children: []Child{has("old"), has("a", hasFields, foreign("a/p"))},
			want: "hold fields of a (scale): it belongs to a/p, and is left alone\nwait old: no part wants it, but a is not written: it belongs to a/p, and is left alone\n"},

		{name: "the last layer goes first", children: []Child{has("a"), has("b", layer(1)), has("c", layer(1)), has("d", layer(2), retains)},
			want: "hold d: no part wants it, and it is retained\ndelete b: no part wants it\ndelete c: no part wants it\nwait a: no part wants it; it goes after b\n"},
		{name: "and must be gone", children: []Child{has("a"), has("b", layer(1), deleting)},
			want: "wait b: it is being deleted\nwait a: no part wants it; it goes after b\n"},
		{name: "a deletion that fails holds back those below", children: []Child{has("a"), has("b", layer(1)), has("c", layer(1))},
			failures: []Failure{{ID: deployment("b"), Reason: "a webhook says no"}},
			want:     "wait b: a webhook says no\ndelete c: no part wants it\nwait a: no part wants it; it goes after b\n"},
		{name: "nothing goes before all is written", parts: []Part{wants("new")}, children: []Child{has("old")},
			want: "create new: it is not there\nwait old: no part wants it, but new is not written yet\n"},
		{name: "which need not be ready", parts: []Part{wants("new")}, children: []Child{has("old"), has("new", unready("0 of 1"))},
			want: "delete old: no part wants it\n"},
		{name: "nothing goes that is not synced", children: []Child{has("old")}, unsynced: []Kind{{"v1", "Service"}},
			want: "wait old: no part wants it, but nobody knows which objects of v1 Service there are: they are not listed yet, or not served any more\n"},
		{name: "nothing is made that is not synced", parts: []Part{wants("a"), wants("b", func(p *Part) { p.ID.Kind = "StatefulSet" })},
			unsynced: []Kind{{"apps/v1", "StatefulSet"}},
			want:     "create a: it is not there\nwait StatefulSet shop/b: nobody knows which objects of apps/v1 StatefulSet there are: they are not listed yet, or not served any more\n"},
		{name: "nothing goes when not all was known", parts: []Part{wants("a")}, children: []Child{has("old")}, unknown: "reads.images is not synced",
			want: "create a: it is not there\nwait old: no part wants it, but reads.images is not synced\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Actions(Wanted{Parts: test.parts},
				Inventory{Children: test.children, Failures: test.failures, Unsynced: test.unsynced, Unknown: test.unknown})
			if err != nil {
				t.Fatal(err)
			}
			if shown(got) != test.want {
				t.Errorf("got\n%swant\n%s", shown(got), test.want)
			}
		})
	}
}

// No other object than the one that was seen is changed or deleted.
func TestActionsNameTheObject(t *testing.T) {
	got, err := Actions(Wanted{Parts: []Part{wants("a"), wants("b", after("a"))}},
		Inventory{Children: []Child{has("a", outdated), has("b", foreign("kubectl"), adopted)}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := got[0], got[1]; a.UID != "uid of a" || a.Part != "a" || a.Adopt || b.Part != "b" {
		t.Errorf("got %+v", got)
	}
}

func TestLayers(t *testing.T) {
	got, err := Layers([]Part{wants("d", after("b", "c")), wants("a"), wants("b", after("a")), wants("c"), wants("e", after("d", "a"))})
	if want := []int{2, 0, 1, 0, 3}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	var chain []Part
	for i := range MaxParts {
		name := "p" + strings.Repeat("x", i)
		p := wants(name)
		if i > 0 {
			p.After = []string{chain[i-1].Name}
		}
		chain = append(chain, p)
	}
	slices.Reverse(chain)
	if got, err := Layers(chain); err != nil || got[0] != MaxParts-1 {
		t.Errorf("a chain of all parts: %v", err)
	}
	for want, parts := range map[string][]Part{
		`a part has no name: Deployment shop/a`:                               {{ID: deployment("a")}},
		`two parts have the name "a"; give one of them another name=`:         {wants("a"), wants("a", func(p *Part) { p.ID = deployment("b") })},
		`parts "a" and "b" are the same: Deployment shop/a`:                   {wants("a"), wants("b", func(p *Part) { p.ID = deployment("a") })},
		`part "a" comes after "webb", which is no part (did you mean "web"?)`: {wants("a", after("webb")), wants("web")},
		`parts wait for each other: a after a`:                                {wants("a", after("a"))},
		`parts wait for each other: b after c after b`:                        {wants("a", after("b")), wants("b", after("c")), wants("c", after("b"))},
		`part "b" comes after "x", and both are of one rolling(…), which has an order already: leave after out`: {
			wants("a", rolls(0)), wants("x", after("a")), wants("b", after("x"), rolls(0))},
		`1001 parts are more than the 1000 that one parent may have`: slices.Repeat([]Part{wants("a")}, 1001),
	} {
		if _, err := Layers(parts); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := Actions(Wanted{Parts: parts}, Inventory{}); err == nil {
			t.Errorf("actions in spite of: %s", want)
		}
	}
}
