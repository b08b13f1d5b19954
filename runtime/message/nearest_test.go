package message

import "testing"

// A name in other letters is nearer than a longer one.
func TestNearestInOtherLetters(t *testing.T) {
	if got := Nearest("imagepolicy", []string{"imagePolicyDrift", "imagePolicy", "imagePolicyEnabled"}); got != "imagePolicy" {
		t.Errorf("got %q", got)
	}
}

// A hostile tree does not steer the terminal; lines and tabs stay.
func TestLines(t *testing.T) {
	if got, want := Lines("a\x1b[31m\tb\n\x07c\u202e\u009b\n"), "a [31m\tb\n c  \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
