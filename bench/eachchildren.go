package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eachRequests is how many requests one event of a child may cost.
const eachRequests = 2

// measureChildren counts the runs and the requests that one event of a child leads to, among many
// objects of for_each.
func (x *eaches) measureChildren(ctx context.Context) error {
	var err error
	if x.witness, err = x.b.observe(ctx, eachMirrors); err != nil {
		return err
	}
	s, err := x.b.startStarling(ctx, "each-children", eachKind{children: true}.tree())
	if err != nil {
		return err
	}
	x.running = map[string]*process{sideHook: s.process}
	if _, err := x.all(ctx, x.names(sideHook)); err != nil {
		return err
	}
	if err := rests(ctx, s); err != nil {
		return err
	}
	var runs, asked []float64
	for n := range x.b.size(40, 40, 5) {
		c, err := x.childChanges(ctx, s, n)
		if err != nil {
			return err
		}
		runs, asked = append(runs, float64(c.runs)), append(asked, float64(c.requests))
	}
	// Renewing the Lease is no part of the middle.
	most, requests := percentile(runs, 1), percentile(asked, 0.5)
	x.b.table.add(row{
		what:     fmt.Sprintf("one event of a child among %d objects, runs, at most", x.objects),
		starling: fmt.Sprint(most), aim: verdict("1", most == 1),
	})
	x.b.table.add(row{
		what: "… requests, p50", starling: fmt.Sprint(requests),
		aim: verdict(fmt.Sprintf("≤ %d", eachRequests), requests <= eachRequests),
	})
	return x.clear(ctx)
}

// rests waits until no run has come for two seconds: what the first pass has made has events, too.
func rests(ctx context.Context, s *starling) error {
	for before := -1; ; {
		runs, err := s.runs()
		if err != nil {
			return err
		}
		if runs == before {
			return nil
		}
		before = runs
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// costs are what Starling has done so far.
type costs struct{ runs, requests int }

func costsOf(s *starling) (c costs, err error) {
	if c.runs, err = s.runs(); err != nil {
		return c, err
	}
	c.requests, err = s.counted("starling_api_requests_total")
	return c, err
}

// childChanges changes one mirror, and returns what follows.
func (x *eaches) childChanges(ctx context.Context, s *starling, n int) (costs, error) {
	before, err := costsOf(s)
	if err != nil {
		return costs{}, err
	}
	_, err = x.b.client.CoreV1().ConfigMaps(eachMirrors).Patch(ctx, x.name(sideHook, n*7919%x.objects), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"note":"%d"}}}`, n), metav1.PatchOptions{})
	if err != nil {
		return costs{}, err
	}
	if err := pause(ctx, time.Second/2); err != nil {
		return costs{}, err
	}
	after, err := costsOf(s)
	return costs{after.runs - before.runs, after.requests - before.requests}, err
}
