package lane

import (
	"testing"
	"time"
)

func TestRetryWaitsLongerEachTime(t *testing.T) {
	now, backoff := time.Unix(0, 0), Backoff{Min: time.Second, Max: 3 * time.Second, Factor: 2}
	var r Retry
	if r.Waits(now) {
		t.Error("it waits before anything has failed")
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		r.Failed(now, backoff, 0)
		if r.Attempt != i+1 || !r.At.Equal(now.Add(want)) || !r.Waits(now) || r.Waits(now.Add(want)) {
			t.Errorf("after %d failures the next try is at %s", r.Attempt, r.At)
		}
	}
}
