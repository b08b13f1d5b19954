package process

import (
	"strings"
	"testing"
)

func TestHookEnv(t *testing.T) {
	t.Setenv("STARLING_TEST_REGION", "north")
	t.Setenv("STARLING_TEST_EMPTY", "")
	env, err := HookEnv{"STARLING_TEST_REGION", "STARLING_TEST_EMPTY"}.Lookup()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STARLING_TEST_REGION", "south")
	for name, want := range map[string]string{"STARLING_TEST_REGION": "north", "STARLING_TEST_EMPTY": ""} {
		if got, err := env(name); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := env("HOME"); err == nil || !strings.HasSuffix(err.Error(), "name it: starling run --hook-env HOME") {
		t.Errorf("got %v", err)
	}
	if _, err := (HookEnv{"STARLING_TEST_NONE"}).Lookup(); err == nil || !strings.HasPrefix(err.Error(), "--hook-env STARLING_TEST_NONE: there is no such variable") {
		t.Errorf("got %v", err)
	}
}
