package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// chaos is a cluster and a process in it. An action of the engine waits until it
// is picked, at random; its answers come back in the order in which they arose.
type chaos struct {
	t     *testing.T
	r     *rand.Rand // nil: everything in order
	w     *world
	calm  bool // nothing fails any more
	truth truth
	log   []string
	trees *trees // nil: the tree stays as it is

	e       *Engine
	now     time.Time
	wakeAt  time.Time
	pending []Action
	inbox   []Input
	live    map[string]bool // watches that tell of changes
	blind   map[uint64]bool // runs that saw an incomplete snapshot
	asked   map[uint64]bool // requests that have no answer yet
	asks    uint64
	late    map[uint64]bool // releases that nobody waits for any more

	kept     map[string]map[string][]byte
	releases map[ReleaseRef]string // the values, "" for a failed one
}

func newChaos(t *testing.T, r *rand.Rand) *chaos {
	on := func(weight int, requires ...string) builtins.ModuleDecl {
		d := builtins.ModuleDecl{Enabled: true, Requires: requires}
		if weight > 0 {
			d.Weight = &weight
		}
		return d
	}
	db := mod("db", on(1), hk("nodes", onWatch("nodes"), onReceive("/db")), hk("start", onStartup(0)), hk("before", onBefore()), hk("after", onAfter()))
	db.Hooks[0].Queue = "slow"
	db.Tree.CRDs = []tree.File{{Path: "crds/a.yaml"}}
	web := checking(mod("web", on(0, "db"), hk("nodes", onStartup(1), onWatch("nodes"), onAfter(), onReceive("/web"))))
	web.Enabled = noFunction{}
	w := newWorld(t, mod(globalName, builtins.ModuleDecl{}, hk("g", onStartup(0), onWatch("nodes"))),
		db, web, mod("dyn", builtins.ModuleDecl{}, hk("a", onStartup(0))), mod("safe", on(2)), readying(mod("quick", on(0), hk("nodes", onWatch("nodes"), onReceive("/quick")))))
	return &chaos{t: t, r: r, w: w, calm: r == nil, now: w.now,
		kept: map[string]map[string][]byte{}, releases: map[ReleaseRef]string{}}
}

func (c *chaos) complain(format string, a ...any) { c.t.Errorf(format, a...) }

func (c *chaos) note(format string, a ...any) { c.log = append(c.log, fmt.Sprintf(format, a...)) }

// boot starts a process.
func (c *chaos) boot() {
	c.note("boot")
	if c.trees != nil {
		c.w.gen = c.trees.generation(c.truth.tree)
	}
	c.e, c.wakeAt = New(c.w.opts), time.Time{}
	c.pending, c.live, c.blind, c.asked, c.late = nil, map[string]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	var installed []ReleaseRef
	for ref := range c.releases {
		installed = append(installed, ref)
	}
	slices.SortFunc(installed, func(a, b ReleaseRef) int { return strings.Compare(a.Module, b.Module) })
	c.inbox = []Input{Start{Generation: c.w.gen, Kept: maps.Clone(c.kept), Installed: installed}, c.truth.config}
	if c.chance(2) {
		slices.Reverse(c.inbox)
	}
}

// crash ends the process; what was under way may or may not have been carried out.
func (c *chaos) crash() {
	for _, a := range c.pending {
		if c.chance(2) {
			c.carryOut(a)
		}
	}
	c.boot()
}

func (c *chaos) chance(n int) bool { return c.r != nil && c.r.IntN(n) == 0 }

func (c *chaos) fails(n int) bool { return !c.calm && c.chance(n) }

// disturb is one step on the way.
func (c *chaos) disturb() {
	if c.chance(40) { // much happens before the process looks
		for range 4 {
			c.change(func(t *truth) { t.config = goodConfigs()[c.r.IntN(5)] })
		}
	}
	switch c.r.IntN(24) {
	case 0:
		c.change(func(t *truth) { t.nodes = c.r.Int64N(4) })
	case 1:
		c.change(func(t *truth) { t.wanted = !t.wanted })
	case 2:
		c.change(func(t *truth) { t.config = goodConfigs()[c.r.IntN(5)] })
	case 3:
		c.change(func(t *truth) { t.config = badConfigs()[c.r.IntN(4)] })
	case 4:
		if c.chance(3) {
			c.crash()
		}
	case 5, 6:
		c.now = c.now.Add(time.Duration(c.r.Int64N(int64(3 * time.Second))))
		if !c.wakeAt.IsZero() && !c.wakeAt.After(c.now) && c.chance(2) {
			c.tick()
		}
	case 7:
		for id := range c.live {
			if c.chance(4) {
				c.inbox = append(c.inbox, WatchFailed{ID: id, Reason: []string{"", "forbidden"}[c.r.IntN(2)]})
			}
		}
	case 8:
		if c.trees != nil && c.chance(2) {
			c.change(func(t *truth) { t.tree = c.trees.pickAny(c.r) })
			break
		}
		c.step()
	case 9:
		c.ask([]string{"db/nodes", "web/nodes", "quick/nodes"}[c.r.IntN(3)])
	default:
		c.step()
	}
}

// ask sends a request to a hook.
func (c *chaos) ask(hook string) {
	c.asks++
	c.asked[c.asks] = true
	c.inbox = append(c.inbox, Requested{ID: c.asks, Hook: hook, Request: &builtins.Request{Binding: "receive"}})
}

// change changes the cluster; those who watch it are told.
func (c *chaos) change(f func(*truth)) {
	before := c.truth
	f(&c.truth)
	c.note("cluster: %+v", c.truth)
	if !cmp.Equal(before.config, c.truth.config) {
		c.inbox = append(c.inbox, c.truth.config)
	}
	if before.tree != c.truth.tree {
		c.inbox = append(c.inbox, Reload{Generation: c.trees.generation(c.truth.tree)})
	}
	if before.nodes == c.truth.nodes && before.wanted == c.truth.wanted {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.live)) {
		c.inbox = append(c.inbox, WatchChanged{ID: id, Events: []builtins.Event{{Type: "modified", Binding: "nodes", Name: "a"}}})
	}
}

// step hands one input over, or carries one action out.
func (c *chaos) step() bool {
	if len(c.inbox) > 0 && (len(c.pending) == 0 || c.r == nil || c.chance(2)) {
		in := c.inbox[0]
		c.inbox = c.inbox[1:]
		c.handle(in)
		return true
	}
	if len(c.pending) == 0 {
		return false
	}
	i := 0
	if c.r != nil {
		i = c.r.IntN(len(c.pending))
	}
	a := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	if in := c.carryOut(a); in != nil {
		c.inbox = append(c.inbox, in)
	}
	return true
}

func (c *chaos) handle(in Input) {
	if _, ok := in.(Start); !ok {
		c.note("%s  > %T %+v", c.now.Format("05.000"), in, in)
	}
	actions := c.e.Handle(c.now, in)
	wantInStep(c.t, c.e)
	for _, a := range actions {
		switch a := a.(type) {
		case Wake:
			c.wakeAt = a.At
		case StopWatch:
			delete(c.live, a.ID)
			c.pending = slices.DeleteFunc(c.pending, func(p Action) bool { s, ok := p.(StartWatch); return ok && s.ID == a.ID })
		case Note:
			c.note("    %s %s: %s", a.Module, a.Hook, a.Message)
		case Respond:
			c.note("    answers %d: %v", a.ID, a.Err)
			if !c.asked[a.ID] {
				c.complain("request %d is answered twice", a.ID)
			}
			delete(c.asked, a.ID)
		case Publish, Unpublish, DropSets, Adopted, Gone, Uncommitted, Serve:
		case Refused:
			c.complain("a generation is refused: %s", a.Reason)
		default:
			if commit, ok := a.(Commit); ok && c.blind[commit.Run] {
				c.complain("what %s made of an incomplete snapshot counts", commit.Hook.ID)
			}
			if c.keeps(a) != "" && slices.ContainsFunc(c.pending, func(p Action) bool { return c.keeps(p) == c.keeps(a) }) {
				c.complain("two writes of what is kept for %s at once", c.keeps(a))
			}
			c.pending = append(c.pending, a)
		}
	}
}

// tick waits for the timer.
func (c *chaos) tick() {
	if c.wakeAt.After(c.now) {
		c.now = c.wakeAt
	}
	c.wakeAt = time.Time{}
	c.handle(Tick{})
}

// keeps names the module whose kept data an action writes.
func (c *chaos) keeps(a Action) string {
	switch a := a.(type) {
	case Save:
		return a.Module
	}
	return ""
}

var errChaos = errors.New("chaos")

// carryOut does what a driver does, on the cluster as it is now.
func (c *chaos) carryOut(a Action) Input {
	switch a := a.(type) {
	case StartWatch:
		c.live[a.ID] = true
		in := WatchSynced{ID: a.ID, Served: true}
		if a.Each {
			in.Objects = []Object{{Name: "a"}}
		}
		return in
	case RunHook:
		c.note("    runs %s", a.Hook.ID)
		for _, id := range a.Watches {
			if !c.live[id] {
				c.blind[a.Run] = true // a run of an earlier life of the module
			}
		}
		if c.fails(5) {
			return RunDone{Run: a.Run, Err: errChaos}
		}
		return RunDone{Run: a.Run, Effects: c.runHook(a)}
	case Commit:
		if c.fails(5) {
			return Committed{Run: a.Run, Err: errChaos}
		}
		return Committed{Run: a.Run}
	case Save:
		failed := c.fails(5)
		if !failed || c.chance(2) {
			c.kept[a.Module] = a.Data
		}
		if failed {
			return Saved{Op: a.Op, Err: errChaos}
		}
		return Saved{Op: a.Op}
	case CheckSettings:
		return SettingsChecked{Op: a.Op}
	case Evaluate:
		failed := c.fails(5)
		if failed && a.Module.Readiness != nil {
			return Evaluated{Op: a.Op, Decision: unready("readiness(): " + errChaos.Error()), Err: errChaos}
		}
		if failed {
			return Evaluated{Op: a.Op, Err: errChaos}
		}
		answers := []builtins.Decision{{Answer: builtins.AnswerWaiting, Reason: "no nodes"}, {Answer: builtins.AnswerOn}, {Answer: builtins.AnswerOn},
			{Answer: builtins.AnswerDisabled, Reason: "too many"}}
		global, _ := a.Values["global"].(map[string]any)
		n, _ := global["nodes"].(int64)
		if a.Module.Readiness != nil {
			return Evaluated{Op: a.Op, Decision: unready([]string{"no nodes", "", "", "too many"}[n])}
		}
		return Evaluated{Op: a.Op, Decision: answers[n]}
	case ApplyCRDs:
		if c.fails(5) {
			return CRDsApplied{Op: a.Op, Err: errChaos}
		}
		return CRDsApplied{Op: a.Op}
	case Overtake:
		c.late[a.Op] = true
		return nil
	case Release:
		return c.release(a)
	case Uninstall:
		c.note("    uninstalls %s", a.Ref.Module)
		if a.Ref.Module == "safe" {
			c.complain("uninstalls what nobody has said no to")
		}
		failed := c.fails(5)
		if !failed || c.chance(2) {
			delete(c.releases, a.Ref)
		}
		if failed {
			return Uninstalled{Op: a.Op, Err: errChaos}
		}
		return Uninstalled{Op: a.Op}
	}
	c.complain("what is %T?", a)
	return nil
}

func (c *chaos) release(a Release) Input {
	text := fmt.Sprint(a.Values)
	c.note("    releases %s %s", a.Ref.Module, text)
	if a.Ref.Module == "db" && !strings.Contains(text, " n:") {
		c.complain("db is rendered before its hook has succeeded: %s", text)
	}
	if c.late[a.Op] && c.chance(2) {
		c.releases[a.Ref] = ""
		return Released{Op: a.Op, Changed: true, Err: &lane.Awaits{For: lane.AwaitsChange, Err: errChaos}}
	}
	if c.fails(5) {
		if c.chance(2) {
			c.releases[a.Ref] = ""
		}
		return Released{Op: a.Op, Err: errChaos}
	}
	changed := c.releases[a.Ref] != text
	c.releases[a.Ref] = text
	return Released{Op: a.Op, Changed: changed, Revision: 1}
}

// runHook is what the Starlark functions would do: they derive all from what they
// see now.
func (c *chaos) runHook(a RunHook) effect.Effects {
	n := c.truth.nodes
	word := a.Hook.Digest // "plain" or "edited"
	switch a.Hook.ID {
	case "global/g":
		eff := set("global.nodes", n)
		if c.truth.wanted {
			eff.Values = append(eff.Values, set("dynEnabled", true).Values...)
		}
		return eff
	case "db/nodes", "web/nodes", "quick/nodes":
		eff := set("n", n)
		eff.Writes = []effect.Write{{Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}}
		if n == 2 {
			eff = effect.Effects{Values: []effect.ValueOp{{Op: effect.OpDefault, Path: []string{"n"}, Value: n}}}
		}
		if word == "edited" {
			eff.Values = append(eff.Values, set("word", word).Values...)
		}
		return eff
	case "db/before":
		seen, err := a.Values.Compose(nil)
		if err != nil {
			c.complain("%v", err)
		}
		return set("before", fmt.Sprint(seen["n"], seen["size"], seen["global"]))
	case "db/after":
		return set("after", true)
	case "db/extra":
		return set("extra", a.Hook.Digest)
	}
	return effect.Effects{}
}

// settle lets everything end that is under way, retries included.
func (c *chaos) settle() {
	quiet := 0
	for n := 0; ; n++ {
		if n > 20_000 {
			c.complain("it does not settle")
			return
		}
		if c.step() {
			quiet = 0
			continue
		}
		if c.wakeAt.IsZero() {
			break
		}
		if quiet++; quiet > 50 {
			c.complain("ticks lead to nothing")
			return
		}
		c.tick()
	}
	// Quiet: nothing follows from what changes nothing.
	before := len(c.log)
	c.inbox = append(c.inbox, c.truth.config, Tick{}, c.truth.config)
	for c.step() {
	}
	for _, line := range c.log[before:] {
		if strings.HasPrefix(line, "    ") {
			c.complain("it is not quiet: %s", line)
		}
	}
	if ready, why := c.e.Ready(); !ready {
		c.complain("not ready: %s", why)
	}
	if len(c.asked) > 0 {
		c.complain("nobody has answered the requests %v", c.asked)
	}
}

// mend has hooks succeed whose last request has failed: it is not tried again.
func (c *chaos) mend() {
	for _, hook := range []string{"db/nodes", "web/nodes", "quick/nodes"} {
		c.ask(hook)
	}
	c.settle()
}

// final is what must not depend on the way.
func (c *chaos) final() map[string]string {
	out := map[string]string{}
	keep := func(module string) {
		for key, data := range c.kept[module] {
			out["kept "+module+" "+key] = string(data)
		}
	}
	keep(globalName)
	for _, m := range c.e.Status().Modules {
		reason := strings.TrimSuffix(m.Reason, "; its release stays as it is")
		out["state "+m.Name] = string(m.State) + " " + reason
		text, installed := c.releases[ReleaseRef{Module: m.Name, Name: m.Name, Namespace: "ops"}]
		switch no := strings.Contains(reason, "false in") || strings.Contains(reason, "disabled"); {
		case m.State == status.ModuleReady || no:
			out["release "+m.Name] = fmt.Sprint(installed, " ", text)
			keep(m.Name)
		}
	}
	for _, h := range c.e.Status().Hooks {
		if h.LastError != "" {
			out["error "+h.ID] = h.LastError
		}
	}
	return out
}
