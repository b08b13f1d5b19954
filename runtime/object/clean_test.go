package object

import "testing"

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
