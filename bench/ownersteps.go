package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// addEvents counts the runs and the requests that one event of a child leads to.
func (x *owners) addEvents(ctx context.Context) error {
	if err := rests(ctx, x.s); err != nil {
		return err
	}
	var runs, asked []float64
	for n := range x.b.size(40, 40, 3) {
		before, err := costsOf(x.s)
		if err != nil {
			return err
		}
		if err := x.patchConfig(ctx, x.parent(sideHook, x.at(n, 0)), fmt.Sprintf(`{"metadata":{"annotations":{"note":"%d"}}}`, n)); err != nil {
			return err
		}
		if err := pause(ctx, time.Second/2); err != nil {
			return err
		}
		after, err := costsOf(x.s)
		if err != nil {
			return err
		}
		runs, asked = append(runs, float64(after.runs-before.runs)), append(asked, float64(after.requests-before.requests))
	}
	most, requests := percentile(runs, 1), percentile(asked, 0.5) // renewing the Lease is no part of the middle
	x.b.table.add(row{what: "… one event of a child, runs, at most", starling: fmt.Sprint(most), aim: verdict("1", most <= 1)})
	x.b.table.add(row{
		what: "… requests, p50", starling: fmt.Sprint(requests), aim: verdict(fmt.Sprintf("≤ %d", eachRequests), requests <= eachRequests),
	})
	return nil
}

// at spreads steps over one half of the parents.
func (x *owners) at(n, half int) int { return n*7919%(x.parents/2) + half*(x.parents/2) }

func (x *owners) patchConfig(ctx context.Context, name, body string) error {
	_, err := x.b.client.CoreV1().ConfigMaps(x.namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// addChanges changes one parent after the other, the sides in turn, until the child has followed.
func (x *owners) addChanges(ctx context.Context) error {
	took, n := map[string][]time.Duration{}, x.b.size(200, 200, 20)
	for i := range n {
		for _, side := range eachSides() {
			x.stamps++
			name, stamp := x.parent(side, x.at(i, 0)), strconv.Itoa(x.stamps)
			began := time.Now()
			if _, err := x.apps.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{%q:%q}}`, stampKey, stamp), metav1.PatchOptions{}); err != nil {
				return err
			}
			seen, err := x.configs.all(ctx, []string{stamped(name, stamp)})
			if err != nil {
				return err
			}
			took[side] = append(took[side], seen.Sub(began))
		}
	}
	x.addSides("… one parent changed, to its child", took, map[float64]float64{0.5: 1.2, 0.99: 1.5})
	return nil
}

// addRepairs has somebody change a child of one parent after the other that Starling has not written for
// some seconds, and waits until it is as it was.
func (x *owners) addRepairs(ctx context.Context) error {
	x.configs.stop()
	var err error
	if x.configs, err = x.b.observe(ctx, x.namespace); err != nil { // one that has not seen how they were
		return err
	}
	took, n := map[string][]time.Duration{}, x.b.size(100, 100, 10)
	for i := range n {
		for _, side := range eachSides() {
			name := x.parent(side, x.at(i, 1))
			began := time.Now()
			if err := x.patchConfig(ctx, name, fmt.Sprintf(`{"data":{%q:"edited"}}`, stampKey)); err != nil {
				return err
			}
			seen, err := x.configs.all(ctx, []string{stamped(name, "0")})
			if err != nil {
				return err
			}
			took[side] = append(took[side], seen.Sub(began))
		}
	}
	x.addSides("… one child edited by hand, to its repair", took, map[float64]float64{0.5: 1.2})
	return nil
}

// addSides adds the rows of two sides, with an aim by percentile.
func (x *owners) addSides(what string, took map[string][]time.Duration, aims map[float64]float64) {
	for _, at := range parts() {
		ours, bare := percentile(took[sideHook], at.part), percentile(took[sideController], at.part)
		ratio := float64(ours) / float64(bare)
		r := row{
			what:     fmt.Sprintf("%s, %s of %d", what, at.name, len(took[sideHook])),
			starling: millis(ours), bare: millis(bare), ratio: times(ratio),
		}
		if aim := aims[at.part]; aim > 0 {
			r.aim = verdict(fmt.Sprintf("≤ %.1f×", aim), ratio <= aim)
		}
		x.b.table.add(r)
	}
}

// looks waits until a starling has looked at each parent. It does not ask often: its processor time, which is
// shown beside, holds the answers.
func (x *owners) looks(ctx context.Context, s *starling) error {
	for runs := 0; runs < x.parents; {
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		var err error
		if runs, err = s.runs(); err != nil {
			return err
		}
	}
	return nil
}

// addMemory starts Starling again, and reads how long it takes until it has looked at each parent, and the
// memory of the children: that of another instance which watches the parents alone is taken off.
func (x *owners) addMemory(ctx context.Context) error {
	resident := map[string]int64{}
	for _, name := range []string{x.name, "parents"} {
		tree := parentsTree(x.namespace)
		if name == x.name {
			tree = nil // it is there
		}
		s, err := x.b.startStarling(ctx, name, tree)
		if err != nil {
			return err
		}
		if err := x.looks(ctx, s); err != nil {
			return err
		}
		if took := time.Since(s.began); name == x.name {
			used, _ := s.cpu() // on Linux
			x.b.say("restart: %s, %s of processor time", seconds(took), seconds(used))
			x.b.table.add(row{
				what: "… restart with nothing changed, until each parent was looked at", starling: seconds(took),
				aim: verdict("≤ 3 s", took <= 3*time.Second),
			})
		}
		if runtime.GOOS == "linux" {
			if err := errors.Join(x.b.settle(ctx), x.b.settle(ctx)); err != nil { // what the start has taken is given back
				return err
			}
			m, err := s.memory()
			if err != nil {
				return err
			}
			resident[name] = m.now - m.file
			x.b.say("memory of %s: %s", name, mebibytes(resident[name]))
		}
		if err := s.stop(); err != nil {
			return err
		}
	}
	if runtime.GOOS != "linux" {
		x.b.table.add(row{what: "… memory per 10000 children", starling: "read on Linux only"})
		return nil
	}
	takes := (resident[x.name] - resident["parents"]) * 10_000 / int64(3*x.parents)
	x.b.table.add(row{what: "… memory per 10000 children", starling: mebibytes(takes), aim: verdict("≤ 10 MiB", takes <= 10<<20)})
	return nil
}

// addRest starts Starling behind a relay, and counts the requests about parents and children that are no
// lists; then all that it makes at rest.
func (x *owners) addRest(ctx context.Context) (err error) {
	r, err := x.b.startRelay()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	back := x.b.through(r.kubeconfig)
	s, err := x.b.startStarling(ctx, x.name, nil)
	back()
	if err != nil {
		return err
	}
	if err := errors.Join(x.looks(ctx, s), s.quiet(ctx, r)); err != nil {
		return err
	}
	about := 0
	for _, request := range r.take() {
		if method, url, _ := strings.Cut(request, " "); method != http.MethodGet || strings.Contains(url, "/"+sideHook+"-") {
			about++
			x.b.say("restart: %s", request)
		}
	}
	x.b.table.add(row{what: "… restart, requests that are no lists", starling: fmt.Sprint(about), aim: verdict("0", about == 0)})
	lasts := time.Duration(x.b.size(60, 60, 3)) * time.Second
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	asked := r.take()
	for _, request := range asked {
		x.b.say("at rest: %s", request)
	}
	x.b.table.add(row{
		what:     fmt.Sprintf("… at rest for %.0f s, requests but those for the Lease", lasts.Seconds()),
		starling: fmt.Sprint(len(asked)), aim: verdict("0", len(asked) == 0),
	})
	return s.stop()
}
