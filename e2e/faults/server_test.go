package faults

import (
	"encoding/json"
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
	// alarm is what the status says of it in the end; "": users see nothing of it.
	alarm string
}

func troubles() []trouble {
	answers := proxy.But(nil, proxy.Watches)
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
		}, 20 * time.Second, ""},
		{"answers are slow, cut and wrong", []proxy.Fault{
			{Name: "slow bodies", On: answers, Percent: 20, Strike: proxy.Slow(5, 100*time.Millisecond)},
			{Name: "wrong bytes", On: proxy.But(answers, proxy.Leases), Percent: 10, Strike: proxy.WrongBytes},
			{Name: "cut requests", On: answers, Percent: 5, Strike: proxy.Abort},
			{Name: "lost answers", On: answers, Percent: 5, Strike: proxy.Unanswered},
		}, 20 * time.Second, ""},
		{"each answer takes long", []proxy.Fault{{Name: "late", On: work, Strike: proxy.Late(latency(), latency())}}, 30 * time.Second, ""},
		{"a storm of 429", []proxy.Fault{{Name: "429", On: work, Strike: proxy.Refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", time.Second)}},
			30 * time.Second, "overloaded"},
		{"etcd is down", []proxy.Fault{{Name: "no etcd", Strike: proxy.Refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: no leader", 0)}},
			time.Minute, "etcdserver: no leader"},
	}
}

// latency is how late each answer is.
func latency() time.Duration {
	if long {
		return 5 * time.Second
	}
	return time.Second
}

// Row 7: the API server is in trouble, and comes back. Starling asks again without making it worse, its status
// says what is wrong, and all is done afterwards.
func TestServerInTrouble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin()
	for round := range rounds {
		for _, trouble := range troubles() {
			before, began := w.proxy.Requests(), time.Now()
			w.inject(trouble.faults...)
			w.changes(8)
			if long {
				for time.Since(began) < trouble.lasts {
					w.revive()
					time.Sleep(100 * time.Millisecond)
				}
			}
			if trouble.alarm != "" {
				w.eventually("the status tells", func() error {
					st, err := w.status()
					if err != nil {
						return err
					}
					text, _ := json.Marshal(st)
					if !strings.Contains(string(text), trouble.alarm) {
						return fmt.Errorf("it says %s", text)
					}
					return nil
				})
			}
			asked, lasted := w.proxy.Requests()-before, time.Since(began)
			healed := w.settle()
			t.Logf("round %d, %s: %.1f requests a second for %s; all was as it should be %s later",
				round, trouble.name, float64(asked)/lasted.Seconds(), lasted.Round(time.Second), healed.Round(time.Millisecond))
		}
	}
}
