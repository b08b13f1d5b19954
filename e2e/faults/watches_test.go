package faults

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
)

// mostUnseen is how long a change may stay unseen while watches fail.
const mostUnseen = 15 * time.Second

// rounds has users change things while faults are in force, and then waits until all is as it should be. It
// returns for how long a change was unseen at most.
func (w *world) rounds(faults ...proxy.Fault) (unseen time.Duration) {
	w.t.Helper()
	w.begin()
	var healed time.Duration
	for range rounds {
		w.inject(faults...)
		for range 3 {
			w.changes(10)
			unseen = max(unseen, w.stamp())
		}
		w.cluster.Compact(w.t)
		w.changes(5)
		healed = max(healed, w.settle())
	}
	w.t.Logf("%d rounds: a change was unseen for %s at most; all was as it should be %s after the faults at most",
		rounds, unseen.Round(time.Millisecond), healed.Round(time.Millisecond))
	return unseen
}

// Row 2: each watch lives for one to five seconds, and ends in all the ways in which a watch can end.
func TestWatchesThatAreCut(t *testing.T) {
	t.Parallel()
	unseen := newWorld(t).rounds(proxy.Fault{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(time.Second, 5*time.Second,
		proxy.Plain, proxy.Delayed, proxy.Halved, proxy.Garbled, proxy.Deaf, proxy.Silent)})
	if long && unseen > mostUnseen {
		t.Errorf("a change was unseen for %s", unseen)
	}
}

// Row 2: connections die, and nobody is told: what is sent on them arrives nowhere. The process notices, and
// keeps its Lease.
func TestConnectionsThatAreHalfOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line, kube := cluster.NewLine(t, w.kube)
	w.replicas[0].kube = kube
	w.begin()
	var unseen time.Duration
	for range rounds {
		line.Freeze()
		unseen = max(unseen, w.stamp())
		w.changes(5)
		w.settle()
		line.Mend()
	}
	t.Logf("%d rounds: a change was unseen for %s at most", rounds, unseen.Round(time.Millisecond))
	if long && (unseen > mostUnseen || w.starts() > 1) {
		t.Errorf("a change was unseen for %s, Starling was started %d times", unseen, w.starts())
	}
}

var gone = proxy.Refuse(http.StatusGone, metav1.StatusReasonExpired, "too old resource version", 0)

// noStreams has lists come in pages, as from servers that do not stream them.
func noStreams(percent int) proxy.Fault {
	return proxy.Fault{Name: "streamed lists refused", On: proxy.Streams, Percent: percent,
		Strike: proxy.Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is not served", 0)}
}

// Row 3: what was known up to some version cannot be gone on with, and a list ends in its midst.
func TestHistoryThatIsGone(t *testing.T) {
	t.Parallel()
	newWorld(t).rounds(
		noStreams(50),
		proxy.Fault{Name: "versions that are gone", On: proxy.Resumes, Percent: 40, Strike: gone},
		proxy.Fault{Name: "continue tokens that are gone", On: proxy.Continues, Percent: 10, Strike: gone},
		proxy.Fault{Name: "small pages", On: proxy.Lists, Strike: proxy.SmallPages(1)},
		proxy.Fault{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(500*time.Millisecond, 3*time.Second, proxy.Plain, proxy.Forgetful, proxy.Lossy)},
	)
}

// Row 4: events are lost, doubled and told in another order, lists are of the past, and answers to writes come
// late, after the events, or not at all.
func TestEventsLostDoubledAndReordered(t *testing.T) {
	t.Parallel()
	writes := proxy.But(proxy.Writes, proxy.Leases)
	newWorld(t).rounds(
		noStreams(70),
		proxy.Fault{Name: "stale lists", On: proxy.Lists, Strike: proxy.Stale()},
		proxy.Fault{Name: "late answers", On: writes, Percent: 50, Strike: proxy.LateAnswer(0, 400*time.Millisecond)},
		proxy.Fault{Name: "lost answers", On: writes, Percent: 5, Strike: proxy.Unanswered},
		proxy.Fault{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(time.Second, 4*time.Second,
			proxy.Doubled, proxy.Repeated, proxy.Swapped, proxy.Delayed, proxy.Lossy, proxy.Deaf)},
	)
}
