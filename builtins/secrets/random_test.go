package secrets_test

import (
	"strings"
	"testing"
)

// The source of a run gives its random values, and all of them.
func TestRandomComesFromTheRun(t *testing.T) {
	run := inRun(testNow, strings.NewReader(strings.Repeat("starling", 4)))
	v, err := exec(t, run, "r = (random.uuid(), random.int(1, 128), random.bytes(4))")
	if err != nil {
		t.Fatal(err)
	}
	const want = `("73746172-6c69-4e67-b374-61726c696e67", 116, b"star")`
	if v.String() != want {
		t.Errorf("got %s, want %s", v, want)
	}
	if _, err := exec(t, run, "random.bytes(40)"); err == nil || !strings.Contains(err.Error(), "no random bytes") {
		t.Errorf("got %v", err)
	}
}
