package plan

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// fields compares two objects and prints what differs.
func fields(t *testing.T, before, after map[string]any) string {
	t.Helper()
	m := &masker{}
	p := &Plan{Objects: []Object{{Action: Update, Fields: m.update(before, after)}}}
	var b bytes.Buffer
	if err := p.Print(&b, PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "\n")
	text, _, _ = strings.Cut(text, "\nPlan: ")
	if !utf8.ValidString(text) {
		t.Errorf("cut in the middle of a letter: %q", text)
	}
	return strings.TrimSpace(text)
}

type obj = map[string]any

// Conditions take one line, however many there are, and a time that follows the clock takes none.
func TestConditions(t *testing.T) {
	of := func(kind, status, reason, message, since string) obj {
		return obj{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
	}
	with := func(conditions ...any) obj { return obj{"status": obj{"conditions": conditions, "ready": int64(1)}} }
	before := with(of("Ready", "True", "Ready", "fine", "1"), of("Progressing", "False", "Ready", "fine", "1"), of("Stalled", "False", "Ready", "fine", "1"))
	for _, tt := range []struct {
		name  string
		after obj
		want  string
	}{
		{"times alone", with(of("Ready", "True", "Ready", "fine", "2"), of("Progressing", "False", "Ready", "fine", "2"), of("Stalled", "False", "Ready", "fine", "3")), ""},
		{"all", with(of("Ready", "False", "Failing", "bad", "2"), of("Progressing", "False", "Failing", "bad", "2"), of("Stalled", "False", "Ready", "still fine", "1")),
			"~ status.conditions: Progressing: reason Failing; Ready: True -> False; Stalled: message still fine"},
		{"new and gone", with(of("Ready", "True", "Ready", "fine", "1"), of("Progressing", "False", "Ready", "fine", "1"), of("Odd", "True", "Odd", "odd", "2")),
			"~ status.conditions: Odd: none -> True; Stalled: False -> none"},
		{"another order", with(of("Stalled", "False", "Ready", "fine", "1"), of("Ready", "True", "Ready", "fine", "1"), of("Progressing", "False", "Ready", "fine", "1")), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fields(t, before, tt.after); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// The line names what has changed, whatever conditions have and lack.
func TestConditionsOfEachForm(t *testing.T) {
	with := func(conditions ...any) obj { return obj{"status": obj{"conditions": conditions}} }
	at := func(field, time string) any { return obj{"type": "A", "status": "True", field: time} }
	for _, tt := range []struct {
		name          string
		before, after obj
		want          string
	}{
		{"another field", with(obj{"type": "A", "status": "True", "observedGeneration": int64(1)}), with(obj{"type": "A", "status": "True", "observedGeneration": int64(2)}),
			"~ status.conditions: A: observedGeneration 2"},
		{"without a status", with(obj{"type": "A", "reason": "x"}), with(obj{"type": "A", "reason": "y"}, obj{"type": "B", "status": "True"}),
			"~ status.conditions: A: reason y; B: none -> True"},
		{"the first status", obj{}, with(at("lastTransitionTime", "1")), "~ status.conditions: A: none -> True"},
		{"the first conditions", obj{"status": obj{"ready": int64(1)}}, with(at("lastTransitionTime", "1")), "- status.ready: 1\n    ~ status.conditions: A: none -> True"},
		{"no status any more", with(at("lastTransitionTime", "1")), obj{}, "~ status.conditions: A: True -> none"},
		{"lastUpdateTime", with(at("lastUpdateTime", "1")), with(at("lastUpdateTime", "2")), ""},
		{"lastHeartbeatTime", with(at("lastHeartbeatTime", "1")), with(at("lastHeartbeatTime", "2")), ""},
		{"two of one type", with(at("x", "1"), at("x", "1")), with(at("x", "1"), at("x", "2")), "~ status.conditions: 1: x 2"},
		{"no list", obj{"status": obj{"conditions": "a"}}, obj{"status": obj{"conditions": "b"}}, `~ status.conditions: "a" -> "b"`},
		{"types of other lists", obj{"spec": obj{"l": []any{obj{"type": "A", "status": "x"}, obj{"type": "B", "status": "x"}}}}, obj{"spec": obj{"l": []any{obj{"type": "B", "status": "x"}, obj{"type": "A", "status": "x"}}}},
			"~ spec.l[0].type: \"A\" -> \"B\"\n    ~ spec.l[1].type: \"B\" -> \"A\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := fields(t, tt.before, tt.after); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func named3(names ...string) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, obj{"name": n, "image": n + ":1"})
	}
	return out
}

func TestFields(t *testing.T) {
	long := strings.Repeat("ä", 300)
	for _, tt := range []struct {
		name          string
		before, after obj
		want          string
	}{
		{"keys with dots, slashes and brackets", obj{"a.b/c": "x", "d e": "y", "plain": obj{"x.y": int64(1)}}, obj{"a.b/c": "z", "d e": "w", "plain": obj{"x.y": int64(2)}},
			"~ [\"a.b/c\"]: \"x\" -> \"z\"\n    ~ [\"d e\"]: \"y\" -> \"w\"\n    ~ plain[\"x.y\"]: 1 -> 2"},
		{"empty parts", obj{"a": obj{}, "b": []any{}, "c": nil}, obj{"d": obj{}, "e": []any{}, "f": nil},
			"- a: {}\n    - b: []\n    - c: null\n    + d: {}\n    + e: []\n    + f: null"},
		{"kinds of values", obj{"a": "1", "b": obj{"x": "y"}}, obj{"a": int64(1), "b": []any{"x"}}, "~ a: \"1\" -> 1\n    ~ b: {\"x\":\"y\"} -> [\"x\"]"},
		{"1 and 1.0", obj{"a": int64(1)}, obj{"a": 1.0}, ""},
		{"elements by name", obj{"c": named3("a", "b")}, obj{"c": []any{obj{"name": "b", "image": "b:2"}, obj{"name": "n", "image": "n:1"}}},
			"- c[a].image: \"a:1\"\n    - c[a].name: \"a\"\n    ~ c[b].image: \"b:1\" -> \"b:2\"\n    + c[n].image: \"n:1\"\n    + c[n].name: \"n\""},
		{"another order", obj{"c": named3("a", "b", "x")}, obj{"c": named3("b", "a", "y")},
			"- c[x].image: \"x:1\"\n    - c[x].name: \"x\"\n    + c[y].image: \"y:1\"\n    + c[y].name: \"y\"\n    ~ c[*].name: [\"a\",\"b\"] -> [\"b\",\"a\"]"},
		{"names twice", obj{"c": named3("a", "a")}, obj{"c": []any{obj{"name": "a", "image": "a:1"}, obj{"name": "a", "image": "a:2"}}}, "~ c[1].image: \"a:1\" -> \"a:2\""},
		{"a list that gets shorter", obj{"c": []any{int64(1), int64(2)}}, obj{"c": []any{int64(1)}}, "- c[1]: 2"},
		{"terminals", obj{"a": "x"}, obj{"a": "\x1b[31mred\u202egnp.exe\u0085"}, `~ a: "x" -> "\u001b[31mred gnp.exe "`},
		{"html", obj{"a": "x"}, obj{"a": "<b>&"}, `~ a: "x" -> "<b>&"`},
		{"long, and other at the end", obj{"a": long + "old"}, obj{"a": long + "new"}, "~ a: …" + strings.Repeat("ä", 10) + "old\" -> …" + strings.Repeat("ä", 10) + "new\""},
		{"lines", obj{"a": "1\n2\n3\n"}, obj{"a": "1\nzwei\n3\n"}, "~ a:\n        - 2\n        + zwei"},
		{"bookkeeping", obj{"metadata": obj{"resourceVersion": "1", "uid": "a"}}, obj{"metadata": obj{"resourceVersion": "2", "uid": "b"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := fields(t, tt.before, tt.after)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
