package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// crowded is [tree] with a hook that sums up what each board holds, and writes only if nobody else has meanwhile.
func crowded() map[string]string {
	files := maps.Clone(tree)
	files["boards/module.star"] = "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"patch\"], namespaces = [\"$NS\"])])\n"
	files["boards/hooks/sum.star"] = `
def sum(ctx):
    o = ctx.object
    lines = ",".join([k + "=" + o.data[k] for k in sorted(o.data) if k != "sum"])
    if o.data.get("sum") != lines:
        k8s.patch(o, merge = {"data": {"sum": lines}}, if_unchanged = o)

hook(sum, on = [k8s.watch("v1", "ConfigMap", name = "boards", namespaces = ["$NS"], labels = {"board": "$NS"}, keep = "object")],
     for_each = "boards", retry = retry(min = "200ms", max = "5s"))
`
	return files
}

// boards is how many objects there are that all write, writers how many write.
const (
	boards  = 5
	writers = 50
)

// Row 5: fifty writers change the objects that hooks, controllers and releases write. Hooks get on meanwhile, their
// conflicts have a bound, and all is as it should be once the writers have gone.
func TestFiftyWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{tree: crowded()})
	w.checks = append(w.checks, w.mirrored, w.children, w.summed)
	for i := range boards {
		_, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("board-", i), Labels: map[string]string{"board": w.ns}},
			Data:       map[string]string{"w": "0"},
		}, metav1.CreateOptions{})
		w.done(err)
	}
	w.begin()
	lasts := 5 * time.Second
	if long {
		lasts = 30 * time.Second
	}
	for range rounds {
		before, conflicts, asked := w.sums(), w.proxy.Answered(http.StatusConflict), w.proxy.Requests()
		began := time.Now()
		unseen := time.Duration(0)
		written := w.crowd(lasts, func() {
			unseen = max(unseen, w.stamp())
			w.rest(500 * time.Millisecond)
		})
		took := time.Since(began).Seconds()
		conflicts, asked = w.proxy.Answered(http.StatusConflict)-conflicts, w.proxy.Requests()-asked
		moved := 0
		for name, sum := range w.sums() {
			if sum != before[name] {
				moved++
			}
		}
		healed := w.settle()
		t.Logf("%d writes of others in %.0f s; Starling asked %.1f times a second, %.1f of these met a conflict; %d of %d boards moved, a change was unseen for %s at most; all was as it should be %s later",
			written, took, float64(asked)/took, float64(conflicts)/took, moved, boards, unseen.Round(time.Millisecond), healed.Round(time.Millisecond))
		// A subject that has met one waits for 200 ms at least.
		if most := boards * (5*took + 10); float64(conflicts) > most {
			t.Errorf("%d conflicts, want %.0f at most", conflicts, most)
		}
		// A board that is written without a pause may have no luck for a while.
		if long && (2*moved <= boards || unseen > mostUnseen) {
			t.Errorf("%d of %d boards moved, a change was unseen for %s", moved, boards, unseen)
		}
	}
}

// crowd has all write for some time, and returns how often they have. Meanwhile something else is done, again and
// again.
func (w *world) crowd(lasts time.Duration, meanwhile func()) (written int) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), lasts)
	defer stop()
	var all sync.WaitGroup
	counts := make([]int, writers)
	shops := slices.Sorted(maps.Keys(w.shops))
	for i := range writers {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for ctx.Err() == nil {
				if w.scribble(ctx, i, shops[dice.IntN(len(shops))], dice) == nil {
					counts[i]++
				}
				time.Sleep(time.Duration(dice.Int64N(int64(400 * time.Millisecond))))
			}
		})
	}
	for ctx.Err() == nil {
		meanwhile()
	}
	all.Wait()
	for _, n := range counts {
		written += n
	}
	return written
}

// scribble is one write of one of the writers.
func (w *world) scribble(ctx context.Context, i int, shop string, dice *rand.Rand) error {
	text := fmt.Sprint(dice.IntN(1000))
	name, patch := fmt.Sprint("board-", dice.IntN(boards)), fmt.Sprintf(`{"data":{"w%d":%q}}`, i, text)
	switch dice.IntN(10) {
	case 0: // an object that a hook applies
		name, patch = "out", fmt.Sprintf(`{"metadata":{"annotations":{"w%d":%q}}}`, i, text)
	case 1: // one of a release
		name, patch = "chart", fmt.Sprintf(`{"data":{"text":%q}}`, text)
	case 2: // a child
		name, patch = shop+"-n", fmt.Sprintf(`{"data":{"n":%q}}`, text)
	case 3: // a parent, whose status is written
		_, err := w.cluster.Dynamic.Resource(w.shop()).Namespace(w.ns).Patch(ctx, shop, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"w%d":%q}}}`, i, text), metav1.PatchOptions{})
		return err
	}
	_, err := w.cluster.Client.CoreV1().ConfigMaps(w.ns).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fmt.Sprint("writer-", i)})
	over := ctx.Err() != nil || err != nil && strings.Contains(err.Error(), "would exceed context deadline") // says the limiter before it is
	if err != nil && !over && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.t.Error(err)
	}
	return err
}

// sums are what the hook has written, by board.
func (w *world) sums() map[string]string {
	sums := map[string]string{}
	for i := range boards {
		name := fmt.Sprint("board-", i)
		sums[name] = w.data(name)["sum"]
	}
	return sums
}

// summed says which board is not summed up.
func (w *world) summed() error {
	for name, sum := range w.sums() {
		var lines []string
		data := w.data(name)
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if key != "sum" {
				lines = append(lines, key+"="+data[key])
			}
		}
		if want := strings.Join(lines, ","); sum != want {
			return fmt.Errorf("%s is summed up as %q, want %q", name, sum, want)
		}
	}
	return nil
}
