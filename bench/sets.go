package main

import (
	"fmt"
	"time"
)

const (
	setMembers = 200
	// setChanged is the member that changes: the last that the bare side writes.
	setChanged = setMembers - 1
	setAim     = 3 // requests for one changed member
)

// roundKey is where a source says which set is made. At stampKey stands the stamp of the one member that changes.
const roundKey = "round"

func setMember(side, round string, i int) string { return fmt.Sprintf("%s-%s-%d", side, round, i) }

func setNames(side, round string) []string {
	names := make([]string, setMembers)
	for i := range names {
		names[i] = setMember(side, round, i)
	}
	return names
}

// sets times a set whose members are all new, and a set with one member that differs
// from what is there, beside the same writes one after the other.
func (b *bench) sets() {
	b.namespaces(sourceNamespace, mirrorNamespace)
	w, s := b.observe(mirrorNamespace), b.startReady("sets", map[string]string{
		"sets/module.star":    moduleWith(mayApply(mirrorNamespace, "delete")),
		"sets/hooks/set.star": text("set.star", "MEMBERS", fmt.Sprint(setMembers)),
	})
	b.startBareReady(sideSet)
	sides := []string{sideHook, sideSet}
	for _, side := range sides {
		first := map[string]string{roundKey: "first", stampKey: "0"}
		b.check(b.createConfigMap(sourceNamespace, side, sideLabel, side, first))
		w.all(setNames(side, "first")...)
	}
	step := func(side, round, stamp string, names ...string) time.Duration {
		defer b.pause(time.Second / 2)
		return w.after(func() error {
			return b.patchConfigMap(sourceNamespace, side, `{"data":{%q:%q,%q:%q}}`, roundKey, round, stampKey, stamp)
		}, names...)
	}
	rounds, created, changed := b.size(10, 2), map[string][]time.Duration{}, map[string][]time.Duration{}
	var asked []float64
	for n := range rounds {
		round := fmt.Sprint(n)
		for _, side := range sides {
			created[side] = append(created[side], step(side, round, "0", setNames(side, round)...))
			requests := s.costs(func() {
				name := stamped(setMember(side, round, setChanged), "1")
				changed[side] = append(changed[side], step(side, round, "1", name))
			}, requestsMetric)[0]
			if side == sideHook {
				asked = append(asked, float64(requests))
			}
		}
		b.say("set %d: %s new, one after the other %s", n, millis(created[sideHook][n]), millis(created[sideSet][n]))
	}
	what := fmt.Sprintf("k8s.apply_set of %d members, all new, p50 of %d, beside one after the other", setMembers, rounds)
	addBeside(b, what, millis, middle(created[sideHook]), middle(created[sideSet]), 0.2)
	addBeside(b, "… one changed", millis, middle(changed[sideHook]), middle(changed[sideSet]), 0)
	requests := middle(asked)
	b.addRow(row{
		what: "… one changed, requests", starling: fmt.Sprint(requests), bare: fmt.Sprint(setMembers),
		aim: verdict(fmt.Sprintf("≤ %d", setAim), requests <= setAim),
	})
}
