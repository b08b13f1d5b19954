package message

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünd 中文": "plain, ünd 中文", "\x1b[31mred\x07": " [31mred ", "a\nb\u0085c": "a b c",
		"exe\u202egnp.": "exe gnp.", "a\u2066b\u200fc": "a b c", "a\u2028b": "a b",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestLinesBecomeOne(t *testing.T) {
	text := errors.Join(errors.New("yaml: two  spaces\r\n\n\t* stay"), errors.New(" last \x1b")).Error()
	if got, want := Line(text), "yaml: two  spaces * stay last"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := List(text), "yaml: two  spaces; * stay; last"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCutsAreAtTheEdgeOfACharacter(t *testing.T) {
	for _, tc := range []struct {
		got, want string
	}{
		{Cut("short", 5), "short"},
		{Cut("longer", 5), "longe…"},
		{Cut("aüb", 2), "a…"},
		{Cut("\x80\x80\x80", 1), "…"},
		{Fit("longer", 6), "longer"},
		{Fit("longest", 6), "lon…"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

func TestApart(t *testing.T) {
	same := strings.Repeat("ü", 100)
	for _, tc := range [][4]string{
		{"a", "b", "a", "b"},
		{same + "a", same + "b", "…" + "üüa", "…" + "üüb"},
		{same, same + "b", "…" + "üü", "…" + "üüb"},
		{"ä" + same, "ö" + same, "ä" + strings.Repeat("ü", 15) + "…", "ö" + strings.Repeat("ü", 15) + "…"},
	} {
		if a, b := Apart(tc[0], tc[1], 32); a != tc[2] || b != tc[3] {
			t.Errorf("got %q and %q, want %q and %q", a, b, tc[2], tc[3])
		}
	}
}

func TestJSON(t *testing.T) {
	if got := JSON(map[string]any{"a": "<b>"}); got != `{"a":"<b>"}` {
		t.Error(got)
	}
	if got := JSON(math.Inf(1)); got != "?" {
		t.Error(got)
	}
}

func TestNearest(t *testing.T) {
	for _, tc := range [][]string{
		{"api_verison", "api_version", "api_version", "kind"},
		{"Enabeld", "enabled", "enabled"},
		{"snapshot", "snapshots", "snapshots", "synced"},
		{"warning", "warn", "debug", "warn"},
		{"stat", "status", "start", "status"},
		{"x", "", "metadata", "spec"},
		{"b", "", "a", "c"},
		{"node", "nodes", "mode", "nodes", "nude"},
		{"node", "mode", "mode"},
		{"name", "", "kind", "labels"},
		{"same", "", "same"},
		{strings.Repeat("x", 1000), "", strings.Repeat("x", 1001)},
	} {
		if got := Nearest(tc[0], tc[2:]); got != tc[1] {
			t.Errorf("%s: got %q, want %q", tc[0], got, tc[1])
		}
	}
}
