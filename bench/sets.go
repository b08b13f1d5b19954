package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// setCommand as the first argument makes this program a loop that applies the members of
	// a set one after the other.
	setCommand = "bare-set"
	setMembers = 200
	// setChanged is the member that changes: the last that the bare side writes.
	setChanged = setMembers - 1
	setAim     = 3 // requests for one changed member
)

// A set is made as its source says: round names it, and stampKey is the stamp of the one
// member that changes.
const roundKey = "round"

func setTree() map[string]string {
	return map[string]string{
		"sets/module.star": `module(
    enabled = True,
    grants = [grant("v1", "ConfigMap", verbs = ["apply", "delete"], namespaces = ["` + mirrorNamespace + `"])],
)
`,
		"sets/hooks/set.star": fmt.Sprintf(`def member(source, i):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "%s-%%s-%%d" %% (source["%s"], i), "namespace": "%s"},
        "data": {"%s": source["%[4]s"] if i == %d else "0"},
    }

def members(ctx):
    for source in ctx.snapshots["sources"]:
        k8s.apply_set(source["%[2]s"], [member(source, i) for i in range(%[6]d)])

hook(
    members,
    on = [k8s.watch(
        "v1", "ConfigMap",
        name = "sources",
        namespaces = ["%s"],
        labels = {"%s": "%[1]s"},
        filter = lambda o: o.data,
    )],
)
`, sideHook, roundKey, mirrorNamespace, stampKey, setChanged, setMembers, sourceNamespace, sideLabel),
	}
}

// applySet is the bare side: it applies the members of a set each time that its source
// changes.
func applySet(args []string) error {
	flags := flag.NewFlagSet(setCommand, flag.ContinueOnError)
	ctx, stop, client, err := bareClient(flags, args)
	if err != nil {
		return err
	}
	defer stop()
	w, err := client.CoreV1().ConfigMaps(sourceNamespace).Watch(ctx, metav1.ListOptions{LabelSelector: sideLabel + "=" + setCommand})
	if err != nil {
		return err
	}
	fmt.Println("watches")
	for event := range w.ResultChan() {
		if source, ok := event.Object.(*corev1.ConfigMap); ok && event.Type != watch.Deleted {
			if err := applyMembers(ctx, client, source); err != nil {
				return err
			}
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch of the bare loop has ended")
	}
	return nil
}

func applyMembers(ctx context.Context, client kubernetes.Interface, source *corev1.ConfigMap) error {
	for i := range setMembers {
		data := map[string]string{stampKey: "0"}
		if i == setChanged {
			data = map[string]string{stampKey: source.Data[stampKey]}
		}
		member := acorev1.ConfigMap(setMember(setCommand, source.Data[roundKey], i), mirrorNamespace).WithData(data)
		_, err := client.CoreV1().ConfigMaps(mirrorNamespace).Apply(ctx, member, metav1.ApplyOptions{FieldManager: setCommand, Force: true})
		if err != nil {
			return err
		}
	}
	return nil
}

func setMember(side, round string, i int) string { return fmt.Sprintf("%s-%s-%d", side, round, i) }

// sets is a set of members that each side makes in rounds.
type sets struct {
	*witness
	b *bench
	s *starling
	p *process
}

func (b *bench) startSets(ctx context.Context) (*sets, error) {
	if err := b.makeNamespaces(ctx, sourceNamespace, mirrorNamespace); err != nil {
		return nil, err
	}
	x := &sets{b: b}
	var err error
	if x.witness, err = b.observe(ctx, mirrorNamespace); err != nil {
		return nil, err
	}
	if x.s, err = b.startStarling(ctx, "sets", setTree()); err != nil {
		return nil, err
	}
	if err := x.s.ready(ctx); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if x.p, err = b.start(self, setCommand, "-kubeconfig", b.kubeconfig); err != nil {
		return nil, err
	}
	if err := wait(ctx, func() bool { return x.p.output.String() != "" }); err != nil {
		return nil, err
	}
	for _, side := range setSides() {
		source := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: side, Labels: map[string]string{sideLabel: side}},
			Data:       map[string]string{roundKey: "first", stampKey: "0"},
		}
		if _, err := b.client.CoreV1().ConfigMaps(sourceNamespace).Create(ctx, source, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		if _, err := x.all(ctx, setNames(side, "first")); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func setSides() []string { return []string{sideHook, setCommand} }

func setNames(side, round string) []string {
	names := make([]string, setMembers)
	for i := range names {
		names[i] = setMember(side, round, i)
	}
	return names
}

// step changes the source of a side and returns how long it took until all names were seen.
func (x *sets) step(ctx context.Context, side, round, stamp string, names []string) (time.Duration, error) {
	began := time.Now()
	_, err := x.b.client.CoreV1().ConfigMaps(sourceNamespace).Patch(ctx, side, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{%q:%q,%q:%q}}`, roundKey, round, stampKey, stamp), metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	seen, err := x.all(ctx, names)
	if err != nil {
		return 0, err
	}
	return seen.Sub(began), pause(ctx, time.Second/2)
}

func (x *sets) end(ctx context.Context) error {
	x.stop()
	for _, p := range []*process{x.s.process, x.p} {
		if err := p.stop(); err != nil {
			return err
		}
	}
	return x.b.removeNamespaces(ctx, sourceNamespace, mirrorNamespace)
}

// measureSets times a set whose members are all new, and one of which one member differs
// from what is there, beside the same writes one after the other.
func measureSets(ctx context.Context, b *bench) error {
	rounds := 10
	if b.quick {
		rounds = 2
	}
	x, err := b.startSets(ctx)
	if err != nil {
		return err
	}
	created, changed := map[string][]time.Duration{}, map[string][]time.Duration{}
	var asked []float64
	for n := range rounds {
		for _, side := range setSides() {
			round := fmt.Sprint(n)
			took, err := x.step(ctx, side, round, "0", setNames(side, round))
			if err != nil {
				return err
			}
			created[side] = append(created[side], took)
			before, err := x.s.counted("starling_api_requests_total")
			if err != nil {
				return err
			}
			if took, err = x.step(ctx, side, round, "1", []string{stamped(setMember(side, round, setChanged), "1")}); err != nil {
				return err
			}
			changed[side] = append(changed[side], took)
			after, err := x.s.counted("starling_api_requests_total")
			if err != nil {
				return err
			}
			if side == sideHook {
				asked = append(asked, float64(after-before))
			}
		}
		b.say("set %d: %s new, one after the other %s", n, millis(created[sideHook][n]), millis(created[setCommand][n]))
	}
	half := func(of map[string][]time.Duration) (hook, bare time.Duration, ratio float64) {
		hook, bare = percentile(of[sideHook], 0.5), percentile(of[setCommand], 0.5)
		return hook, bare, float64(hook) / float64(bare)
	}
	hook, bare, ratio := half(created)
	b.table.add(row{
		what:     fmt.Sprintf("k8s.apply_set of %d members, all new, p50 of %d, beside one after the other", setMembers, rounds),
		starling: millis(hook), bare: millis(bare), ratio: times(ratio), aim: verdict("≤ 0.2×", ratio <= 0.2),
	})
	hook, bare, ratio = half(changed)
	b.table.add(row{what: "… one changed", starling: millis(hook), bare: millis(bare), ratio: times(ratio)})
	requests := percentile(asked, 0.5)
	b.table.add(row{
		what: "… one changed, requests", starling: fmt.Sprint(requests), bare: fmt.Sprint(setMembers),
		aim: verdict(fmt.Sprintf("≤ %d", setAim), requests <= setAim),
	})
	return x.end(ctx)
}
