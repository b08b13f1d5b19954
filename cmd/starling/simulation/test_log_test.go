package simulation

import "testing"

// A hook that tries again and again is shown once, with how often it came; -v shows each line.
func TestLogOfATest(t *testing.T) {
	log := []string{"debug: a", "error: no (next try in 1s)", "error: no (next try in 2s)", "debug: b", "error: no (next try in 4s)", "info: yes"}
	if got, want := (&testPrinter{}).logOf(log), "error: no (next try in 1s)\n    (and 2 times more)\ninfo: yes\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&testPrinter{verbose: true}).logOf(log[:3]), "debug: a\nerror: no (next try in 1s)\nerror: no (next try in 2s)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
