package live

import (
	"strings"
	"testing"
	"time"
)

func TestTimesOfTheLease(t *testing.T) {
	for _, tt := range []struct {
		duration, renew, retry time.Duration
		want                   string
	}{
		{15 * time.Second, 10 * time.Second, 2 * time.Second, ""},
		{7 * time.Second, 4 * time.Second, time.Second, ""},
		{60 * time.Second, 40 * time.Second, 5 * time.Second, ""},
		{15 * time.Second, 10 * time.Second, 0, "every 0s: take 100ms at least"},
		{15 * time.Second, 5 * time.Second, 2 * time.Second, "take 6s at least"},
		{15500 * time.Millisecond, 10 * time.Second, 2 * time.Second, "whole seconds, and not 15.5s"},
		{13 * time.Second, 10 * time.Second, 2 * time.Second, "it must last 14s at least"},
		{13 * time.Second, 10500 * time.Millisecond, 2 * time.Second, "it must last 15s at least"},
	} {
		err := LeaseTimes{Duration: tt.duration, Renew: tt.renew, Retry: tt.retry}.Check()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%v: %v", tt, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%v: got %v", tt, err)
		}
	}
	if err := DefaultLeaseTimes().Check(); err != nil {
		t.Error(err)
	}
}
