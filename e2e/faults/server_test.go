package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/proxy"
)

// trouble is one state that an API server may be in.
type trouble struct {
	name   string
	faults []proxy.Fault
	// lasts is how long it lasts in make faults.
	lasts time.Duration
	// alarm is what the status says of it, as long as the process leads; "": the hooks and modules see nothing of it.
	alarm string
	// shows says whether the metrics show it; nil: the alarm is enough.
	shows func(*replica) error
}

// answers says that the API server has answered so, as the process counts it.
func answers(code string) func(*replica) error {
	return func(r *replica) error {
		n, err := r.metric(`starling_api_requests_total\{code="` + code + `"[^}]*\}`)
		if err == nil && n == 0 {
			err = fmt.Errorf("no request was answered with %s", code)
		}
		return err
	}
}

// takesLong says that a patch takes as long as the answers are late, as the process counts it. The process has
// patched before.
func takesLong(r *replica) error {
	quick, err := r.metric(`starling_api_request_seconds_bucket\{verb="patch",le="0.3"\}`)
	all, wrong := r.metric(`starling_api_request_seconds_count\{verb="patch"\}`)
	if err = errors.Join(err, wrong); err == nil && all-quick < 1 {
		err = fmt.Errorf("all of %.0f patches were quick", all)
	}
	return err
}

// full is the answer to each write while etcd has no space for it.
const full = "etcdserver: mvcc: database space exceeded"

func troubles() []trouble {
	answered := proxy.But(nil, proxy.Watches)
	work := proxy.But(nil, proxy.Leases)
	some := func(name string, percent int, strike proxy.Striker) proxy.Fault {
		return proxy.Fault{Name: name, Percent: percent, Strike: strike}
	}
	return []trouble{
		{"one request in ten fails", []proxy.Fault{
			some("500", 3, proxy.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: request timed out", 0)),
			some("503", 3, proxy.Refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", 0)),
			some("502", 2, proxy.Page(http.StatusBadGateway)),
			some("504", 2, proxy.Refuse(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "timed out", 0)),
		}, 20 * time.Second, "", answers("50.")},
		{"answers are slow, cut and wrong", []proxy.Fault{
			{Name: "slow bodies", On: answered, Percent: 20, Strike: proxy.Slow(5, 100*time.Millisecond)},
			{Name: "wrong bytes", On: proxy.But(answered, proxy.Leases), Percent: 10, Strike: proxy.WrongBytes},
			{Name: "cut requests", On: answered, Percent: 5, Strike: proxy.Abort},
			{Name: "lost answers", On: answered, Percent: 5, Strike: proxy.Unanswered},
		}, 20 * time.Second, "", answers("error")},
		{"each answer takes long", []proxy.Fault{{Name: "late", On: work, Strike: proxy.Late(latency(), latency())}}, 30 * time.Second, "", takesLong},
		{"a storm of 429", []proxy.Fault{{Name: "429", On: work, Strike: proxy.Refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", time.Second)}},
			30 * time.Second, "overloaded", answers("429")},
		{"etcd is down", []proxy.Fault{{Name: "no etcd", Strike: proxy.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: no leader", 0)}},
			time.Minute, "etcdserver: no leader", answers("500")},
		{"etcd is full", []proxy.Fault{{Name: "no space", On: proxy.But(proxy.Writes, proxy.Leases),
			Strike: proxy.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, full, 0)}},
			30 * time.Second, full, answers("500")},
		{"etcd is full for Leases too", []proxy.Fault{{Name: "no space at all", On: proxy.Writes,
			Strike: proxy.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, full, 0)}},
			time.Minute, full, answers("500")},
	}
}

// latency is how late each answer is.
func latency() time.Duration {
	if long {
		return 5 * time.Second
	}
	return time.Second
}

// mostHealing is how long it may take until all is as it should be after the API server was in trouble: a process
// that waited for the Lease looks again after some seconds, and so does a run that has failed often.
const mostHealing = 20 * time.Second

// Row 7: the API server is in trouble, and comes back. Starling asks again without making it worse, its status or
// its metrics say what is wrong, and all is done soon afterwards.
func TestServerInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	for round := range rounds {
		for _, trouble := range troubles() {
			before, began := w.proxy.Requests(), time.Now()
			w.inject(trouble.faults...)
			w.changes(8)
			if trouble.alarm != "" {
				w.eventually("the status tells", func() error {
					st, err := w.status()
					if err != nil {
						return err
					}
					text, _ := json.Marshal(st)
					if strings.Contains(string(text), trouble.alarm) {
						return nil
					}
					if !st.Leader { // the Lease was lost before anybody looked
						w.settle()
						w.inject(trouble.faults...)
						w.changes(1)
					}
					return fmt.Errorf("it says %s", text)
				})
			}
			if long {
				for time.Since(began) < trouble.lasts {
					w.revive()
					time.Sleep(100 * time.Millisecond)
				}
			}
			if trouble.shows != nil {
				w.eventually("the metrics show it", func() error { return trouble.shows(w.replicas[0]) })
			}
			asked, lasted := w.proxy.Requests()-before, time.Since(began)
			healed := w.settle()
			t.Logf("round %d, %s: %.1f requests a second for %s; all was as it should be %s later",
				round, trouble.name, float64(asked)/lasted.Seconds(), lasted.Round(time.Second), healed.Round(time.Millisecond))
			if long && healed > mostHealing {
				t.Errorf("%s: it took %s until all was as it should be", trouble.name, healed)
			}
		}
	}
}
