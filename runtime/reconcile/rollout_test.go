package reconcile

import (
	"slices"
	"testing"
)

func TestRollouts(t *testing.T) {
	pods := func(change ...func(*Part)) []Part {
		return []Part{wants("a", append(change, rolls(2))...), wants("b", append(change, rolls(1))...), wants("c", append(change, rolls(3))...)}
	}
	const turn = ": its turn has not come: "
	holds := func(names ...string) func(*Child) string {
		return func(c *Child) string {
			if slices.Contains(names, c.Name) {
				return "the queue is long"
			}
			return ""
		}
	}
	for _, test := range []struct {
		name     string
		parts    []Part
		rollout  Rollout
		children []Child
		failures []Failure
		want     string
	}{
		{name: "all are made at once", parts: pods(), want: "create a: it is not there\ncreate b: it is not there\ncreate c: it is not there\n"},
		{name: "one at a time comes to a new state, the lowest rank first", parts: pods(),
			children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			want:     "wait a" + turn + "1 of 3 are not available, such as b\napply b: it is wanted in another state\nwait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "two at a time", parts: pods(), rollout: Rollout{MaxUnavailable: 2},
			children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			want:     "apply a: it is wanted in another state\napply b: it is wanted in another state\nwait c" + turn + "2 of 3 are not available, such as b\n"},
		{name: "the next one waits until it is ready", parts: pods(), children: []Child{has("a", outdated), has("b", unready("0 of 1")), has("c", outdated)},
			want: "wait a" + turn + "1 of 3 are not available, such as b\nwait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "or is there again", parts: pods(), children: []Child{has("a", outdated), has("c", outdated)},
			want: "wait a" + turn + "1 of 3 are not available, such as b\ncreate b: it is not there\nwait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "then it comes", parts: pods(), children: []Child{has("a", outdated), has("b"), has("c", outdated)},
			want: "apply a: it is wanted in another state\nwait c" + turn + "1 of 3 are not available, such as a\n"},
		{name: "one that does not work goes first", parts: pods(), children: []Child{has("a", outdated), has("b", outdated), has("c", outdated, unready("0 of 1"))},
			want: "wait a" + turn + "1 of 3 are not available, such as c\nwait b" + turn + "1 of 3 are not available, such as c\napply c: it is wanted in another state\n"},
		{name: "but never all of them at once", parts: pods(),
			children: []Child{has("a", outdated, unready("")), has("b", outdated, unready("")), has("c", outdated, unready(""))},
			want:     "wait a" + turn + "3 of 3 are not available, such as a\napply b: it is wanted in another state\nwait c" + turn + "3 of 3 are not available, such as a\n"},
		{name: "a state that does not work is left behind", parts: pods(), children: []Child{has("a", outdated), has("b", func(c *Child) { c.Digest = "b broken" }, unready("")), has("c", outdated)},
			want: "wait a" + turn + "1 of 3 are not available, such as b\napply b: it is wanted in another state\nwait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "one that is held holds up those after it", parts: pods(), rollout: Rollout{Hold: holds("b"), MaxUnavailable: 2},
			children: []Child{has("a", outdated), has("b", outdated, unready("")), has("c")},
			want:     "wait a" + turn + "b waits: the queue is long\nwait b: the queue is long\n"},
		{name: "and none before it", parts: pods(), rollout: Rollout{Hold: holds("c"), MaxUnavailable: 3},
			children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			want:     "apply a: it is wanted in another state\napply b: it is wanted in another state\nwait c: the queue is long\n"},
		{name: "one whose turn has not come is not asked about", parts: pods(), rollout: Rollout{Hold: holds("a", "c")},
			children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			want:     "wait a" + turn + "1 of 3 are not available, such as b\napply b: it is wanted in another state\nwait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "a repair needs no turn", parts: pods(), rollout: Rollout{Hold: holds("a", "b", "c")},
			children: []Child{has("a", unready("")), has("b", changed("kubectl-edit", "")), has("c")},
			want:     "apply b: kubectl-edit has changed it\n"},
		{name: "to recreate takes a turn", parts: pods(update(UpdateRecreate)), children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			want: "wait a" + turn + "1 of 3 are not available, such as b\napply b: it is wanted in another state; it is made anew where the API server refuses that\n" +
				"wait c" + turn + "1 of 3 are not available, such as b\n"},
		{name: "one whose write fails keeps no turn", parts: pods(), children: []Child{has("a", outdated), has("b", outdated), has("c", outdated)},
			failures: []Failure{failed("b", "a webhook says no", false)},
			want:     "apply a: it is wanted in another state\nhold b: a webhook says no\nwait c" + turn + "1 of 3 are not available, such as a\n"},
		{name: "one that waits for others keeps no turn", parts: append(pods(), wants("d", after("e"), rolls(0)), wants("e")),
			children: []Child{has("a", outdated), has("b"), has("c"), has("d", outdated, layer(1)), has("e", unready(""))},
			want:     "apply a: it is wanted in another state\nwait d: it waits: e is not ready\n"},
		{name: "those after a member wait for its turn", parts: append(pods(), wants("d", after("a"))),
			children: []Child{has("a", outdated), has("b", outdated), has("c")},
			want:     "wait a" + turn + "1 of 3 are not available, such as b\napply b: it is wanted in another state\nwait d: it waits: a is not written yet\n"},
		{name: "what waits for its turn holds up no deletion", parts: pods(), children: []Child{has("a", outdated), has("b", unready("")), has("c"), has("old", unready(""))},
			want: "wait a" + turn + "1 of 3 are not available, such as b\ndelete old: no part wants it\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.rollout.Name = "pods"
			got, err := Actions(Wanted{test.parts, []Rollout{test.rollout}}, Inventory{Children: test.children, Failures: test.failures})
			if err != nil {
				t.Fatal(err)
			}
			if shown(got) != test.want {
				t.Errorf("got\n%swant\n%s", shown(got), test.want)
			}
		})
	}
}
