package e2e

import (
	"fmt"
	"maps"
	"os"
	"testing"
	"time"
)

// asked are the requests of the process to the API server so far: renewals of the Lease, and all
// others.
func (f *fixture) asked() (renewals, others float64) {
	f.t.Helper()
	renewals = f.metric("starling_api_requests_total", `verb="put"`)
	return renewals, f.metric("starling_api_requests_total") - renewals
}

// At rest neither process asks the API server for anything but the Lease, with a hundred releases watched for drift: after
// an install, and after a restart too. DRIFT_REST says for how long that is looked at: 15s by default.
func TestRestWithDriftWatches(t *testing.T) {
	t.Parallel()
	long := 15 * time.Second
	if text := os.Getenv("DRIFT_REST"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{}
	for i := range 100 {
		maps.Copy(files, drifting(fmt.Sprintf("m%02d", i)))
	}
	f := newFixture(t, files, driftingRole())
	f.start()
	f.waitReady()
	rests := func(when string) {
		t.Helper()
		f.other().waitReadyAs(false)
		f.eventually("it rests", func() error {
			_, before := f.asked()
			_, stood := f.other().asked()
			time.Sleep(2 * time.Second)
			_, now := f.asked()
			_, stands := f.other().asked()
			if now != before || stands != stood {
				return fmt.Errorf("it has asked %v times meanwhile, the one that stands by %v times", now-before, stands-stood)
			}
			return nil
		})
		for tries := 1; ; tries++ {
			began := time.Now()
			renewed, before := f.asked()
			_, stood := f.other().asked()
			time.Sleep(long)
			renewals, now := f.asked()
			writes, stands := f.other().asked()
			if now += stands - stood; writes > 0 {
				t.Errorf("%s: the process that stands by has written %v times", when, writes)
			}
			if now != before && tries < 10 { // a connection that is held up on a busy machine is opened anew
				t.Logf("%s: %v requests within %s", when, now-before, long)
				continue
			}
			if now != before {
				t.Errorf("%s: %v requests within %s", when, now-before, long)
			}
			if n, took := renewals-renewed, time.Since(began); n == 0 || n > took.Seconds()+1 {
				t.Errorf("%s: %v renewals of the Lease within %s", when, n, took)
			}
			return
		}
	}
	rests("after an install")
	f.restart()
	f.waitReady()
	rests("after a restart")
}
