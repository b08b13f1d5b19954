package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

// A cluster in which writes fail, objects become ready or not, and somebody edits and deletes them:
// no answer breaks a rule, and once that has ended all is as wanted.
func TestActionsAtRandom(t *testing.T) {
	n := uint64(60)
	if times, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 16); err == nil {
		n *= times
	}
	for seed := range n {
		newWorld(t, seed).live()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzActions(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { newWorld(t, seed).live() })
}

// world is a cluster, and what is wanted in it.
type world struct {
	t      *testing.T
	random *rand.Rand
	wanted Wanted
	// broken parts fail at each write; their parts and all after them are not looked at in the end.
	broken   map[string]bool
	there    map[ID]*Child
	failures map[ID][]Failure
	uids     int
	trouble  bool // writes fail
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), broken: map[string]bool{}, there: map[ID]*Child{}, failures: map[ID][]Failure{}, trouble: true}
	w.want()
	for range w.random.IntN(4) { // of somebody else
		w.put(Child{ID: deployment(w.name()), Foreign: "kubectl", Adopt: w.odds(0.3), Ready: true})
	}
	for range w.random.IntN(4) { // of earlier times
		w.put(Child{ID: deployment(w.name()), Digest: "old", Layer: w.random.IntN(3), Retain: w.odds(0.2), Ready: w.odds(0.5)})
	}
	return w
}

func (w *world) odds(p float64) bool { return w.random.Float64() < p }

func (w *world) name() string { return string(rune('a' + w.random.IntN(10))) }

func (w *world) put(c Child) {
	w.uids++
	c.UID = fmt.Sprint("uid ", w.uids)
	if w.there[c.ID] == nil {
		w.there[c.ID] = &c
	}
}

// want makes up what is wanted: parts come after those that are made up before them.
func (w *world) want() {
	w.wanted, w.broken = Wanted{Rollouts: []Rollout{{Name: "pods", MaxUnavailable: 1 + w.random.IntN(2)}}}, map[string]bool{}
	rolls := map[string]bool{} // and those after them
	for i := range 10 {
		if w.odds(0.4) {
			continue
		}
		name := string(rune('a' + i))
		p := Part{Name: name, ID: deployment(name), Digest: fmt.Sprint(name, w.random.IntN(3)), Retain: w.odds(0.1),
			Update: []Update{UpdateApply, UpdateApply, UpdateRecreate, UpdateNever}[w.random.IntN(4)]}
		for _, before := range w.wanted.Parts {
			if w.odds(0.25) {
				p.After = append(p.After, before.Name)
				rolls[name] = rolls[name] || rolls[before.Name]
			}
		}
		if w.odds(0.4) && !rolls[name] {
			rolls[name] = true
			p.Rolling, p.Rank = "pods", w.random.IntN(3)
		}
		if w.odds(0.1) {
			w.broken[name] = true
		}
		w.wanted.Parts = append(w.wanted.Parts, p)
	}
	w.random.Shuffle(len(w.wanted.Parts), func(i, j int) {
		w.wanted.Parts[i], w.wanted.Parts[j] = w.wanted.Parts[j], w.wanted.Parts[i]
	})
}

func (w *world) live() {
	for range 30 {
		in := w.inventory()
		if w.odds(0.1) {
			in.Unknown = "a read is not synced"
		}
		if w.odds(0.1) {
			in.Unsynced = []Kind{{"apps/v1", "Deployment"}}
		}
		for _, a := range w.actions(in) {
			if a.Op.Acts() && w.odds(0.7) { // else the process has ended before
				w.carryOut(a)
			}
		}
		w.happen()
		if w.odds(0.1) {
			w.want()
		}
	}
	w.trouble = false
	for range 300 {
		acted := false
		for _, a := range w.actions(w.inventory()) {
			if a.Op.Acts() {
				acted = true
				w.carryOut(a)
			}
		}
		moved := w.recover()
		if !acted && !moved {
			if w.rest(); w.t.Failed() {
				w.t.Logf("at rest:\n%s", shown(w.actions(w.inventory())))
			}
			return
		}
	}
	w.t.Errorf("no rest:\n%s", shown(w.actions(w.inventory())))
}

// inventory is what there is, in any order.
func (w *world) inventory() Inventory {
	var in Inventory
	for _, id := range slices.SortedFunc(maps.Keys(w.there), compareIDs) {
		in.Children = append(in.Children, *w.there[id])
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.failures), compareIDs) {
		in.Failures = append(in.Failures, w.failures[id]...)
	}
	return in
}

// actions asks twice, with the children in another order.
func (w *world) actions(in Inventory) []Action {
	got, err := Actions(w.wanted, in)
	if err != nil {
		w.t.Fatal(err)
	}
	again := in
	again.Children = slices.Clone(in.Children)
	w.random.Shuffle(len(again.Children), func(i, j int) {
		again.Children[i], again.Children[j] = again.Children[j], again.Children[i]
	})
	if other, _ := Actions(w.wanted, again); !reflect.DeepEqual(got, other) {
		w.t.Errorf("another order of the children:\n%sthen\n%s", shown(got), shown(other))
	}
	checkRules(w.t, w.wanted, in, got)
	return got
}

// carryOut does one action, or fails.
func (w *world) carryOut(a Action) {
	part := Part{}
	if i := slices.IndexFunc(w.wanted.Parts, func(p Part) bool { return p.Name == a.Part }); i >= 0 {
		part = w.wanted.Parts[i]
	}
	c := w.there[a.ID]
	switch {
	case w.broken[a.Part], w.trouble && w.odds(0.2):
		w.failures[a.ID] = []Failure{{ID: a.ID, Digest: part.Digest, Reason: "forbidden"}}
		return
	case a.Op == OpDelete, a.Op == OpApply && part.Update == UpdateRecreate && c.Digest != part.Digest && !a.Adopt:
		c.Deleting = true // until its finalizers are gone
		delete(w.failures, a.ID)
		return
	}
	if c == nil {
		w.put(Child{ID: a.ID})
		c = w.there[a.ID]
	}
	c.Foreign, c.Adopt, c.Changed, c.Digest, c.Retain, c.Ready = "", false, "", part.Digest, part.Retain, false
	layers, _ := Layers(w.wanted.Parts)
	c.Layer = layers[slices.IndexFunc(w.wanted.Parts, func(p Part) bool { return p.Name == a.Part })]
	delete(w.failures, a.ID)
}

// happen is what others do.
func (w *world) happen() {
	for _, id := range slices.SortedFunc(maps.Keys(w.there), compareIDs) {
		switch c := w.there[id]; {
		case c.Deleting && w.odds(0.5), w.odds(0.03):
			delete(w.there, id)
		case w.odds(0.1) && c.Foreign == "":
			c.Changed = "kubectl-edit"
		case w.odds(0.5):
			c.Ready = !c.Deleting && w.odds(0.8)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.failures), compareIDs) {
		for i := range w.failures[id] {
			w.failures[id][i].Due = w.odds(0.5)
		}
	}
}

// recover has all come to an end that is under way. It says whether anything was.
func (w *world) recover() (moved bool) {
	maps.DeleteFunc(w.there, func(_ ID, c *Child) bool {
		moved = moved || c.Deleting || !c.Ready
		c.Ready = true
		return c.Deleting
	})
	for id, list := range w.failures {
		for i := range list {
			if f := &list[i]; !f.Due && !w.isBroken(id) { // those fail for ever
				f.Due, moved = true, true
			}
		}
	}
	return moved
}

func (w *world) isBroken(id ID) bool {
	return slices.ContainsFunc(w.wanted.Parts, func(p Part) bool { return p.ID == id && w.broken[p.Name] })
}

// rest holds the end against what is wanted.
func (w *world) rest() {
	stuck := map[string]bool{} // parts that cannot be written, and those after them
	all := true
	layers, _ := Layers(w.wanted.Parts)
	// One member that cannot be written may hold up a rollout.
	heldUp := slices.ContainsFunc(w.wanted.Parts, func(p Part) bool {
		c := w.there[p.ID]
		return w.broken[p.Name] || c != nil && c.Foreign != ""
	})
	order := make([]int, len(layers))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(layers[a], layers[b]) })
	for _, i := range order {
		p := w.wanted.Parts[i]
		c := w.there[p.ID]
		asWanted := c != nil && c.Foreign == "" && c.Changed == "" && c.Digest == p.Digest && c.Layer == layers[i] && c.Retain == p.Retain
		switch {
		case asWanted, c != nil && c.Foreign == "" && p.Update == UpdateNever:
			continue
		case w.broken[p.Name], c != nil && c.Foreign != "", heldUp && p.Rolling != "", slices.ContainsFunc(p.After, func(name string) bool { return stuck[name] }):
			stuck[p.Name], all = true, false
		default:
			w.t.Errorf("part %s is not as wanted: %+v, %+v", p.Name, p, c)
		}
	}
	for id, c := range w.there {
		wanted := slices.ContainsFunc(w.wanted.Parts, func(p Part) bool { return p.ID == id })
		if all && !wanted && c.Foreign == "" && !c.Retain {
			w.t.Errorf("%s is still there, and no part wants it", id)
		}
	}
}
