package status

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A hook that has not run yet and waits for its schedule says so.
func TestHookThatWaitsForItsSchedule(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	next := now.Add(90 * time.Second)
	var out bytes.Buffer
	if err := PrintHooks(&out, []Hook{{Module: "web", ID: "web/hooks/a.star:f", State: HookWaiting, NextRun: &next}}, Options{Now: now}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "next run in 90s") {
		t.Error(out.String())
	}
}
