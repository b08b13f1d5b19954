// Package hostile attacks a Starling process on a real control plane, in a memory cgroup
// as large as the limit of the Deployment: by module trees, by objects that hooks watch,
// and by the user's ConfigMap. A healthy module beats beside each attack.
package hostile

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/starling-operator/starling/e2e/cluster"
)

var shared *cluster.Cluster

func TestMain(m *testing.M) { os.Exit(cluster.Main(m, &shared)) }

// attack is one module that asks for more than there is. A new attack is a new row of
// [attacks] or of a table like it.
type attack struct {
	// name is the module's. It names the row in the tests' output, too.
	name string
	// files of the module, by paths below its folder. "$NS" in them is the operator's
	// namespace. module.star is "module(enabled = True)" where it is missing.
	files map[string]string
	// objects is a YAML stream that is applied once the module is in the tree; "$NS" as in
	// files.
	objects string
	// config is the module's section of the user's ConfigMap, written once the module is in
	// the tree.
	config string
	// says is what the status must say: the module's reason, errors and problems, those of
	// its hooks, and the problems of the config that name it. Any one of them is enough.
	// None: nothing need be said.
	says []string
	// alone gives the row a process for itself; others share one with up to seven.
	alone bool
}

// together is how many attacks share one process.
const together = 8

// The process lives, the healthy module beats on, and the status names the limit that
// stopped each attack: after a reload that brought the attacks, and after a start with them.
func TestAttacks(t *testing.T) { // no parallel test: it takes both processors
	var rest []attack
	for _, a := range attacks() {
		if a.alone {
			t.Run(a.name, func(t *testing.T) { underAttack(t, a) })
		} else {
			rest = append(rest, a)
		}
	}
	for some := range slices.Chunk(rest, together) {
		t.Run(some[0].name+" to "+some[len(some)-1].name, func(t *testing.T) { underAttack(t, some...) })
	}
}

func underAttack(t *testing.T, attacks ...attack) {
	a := newArena(t)
	a.start()
	rest := a.waitBeat()
	beats := a.beat(rest)
	for _, each := range attacks {
		a.write(each.tree())
	}
	for _, each := range attacks {
		a.strike(each)
	}
	for _, each := range attacks {
		a.waitSays(each)
	}
	if slices.ContainsFunc(attacks, func(by attack) bool { return len(by.says) == 0 }) {
		beats.goOn(4)
	}
	beats.end()

	a.stop()
	a.start()
	a.waitBeat()
	for _, each := range attacks {
		a.waitSays(each)
	}
	a.waitBeat()
	a.stop()
}

// Three hooks that fill the memory at once, again and again, keep the process below the
// limit of the Deployment, and between their tries it gives back what they took.
func TestThreeBombs(t *testing.T) {
	threeBombs(t,
		hook("list", "all = []\n    for i in range(10000000):\n        for j in range(10000000):\n            all.append(None)"),
		hook("dict", "all = {}\n    for i in range(10000000):\n        all[i] = None"),
		hook("texts", "all = []\n    for i in range(10000000):\n        all.append(\"a\" * (1 << 24))"),
	)
}

// The same with what comprehensions and slices make.
func TestThreeComprehensions(t *testing.T) {
	threeBombs(t,
		hook("listed", "all = []\n    for i in range(10000000):\n        all.append([None for x in range(4000000)])"),
		hook("mapped", "all = []\n    for i in range(10000000):\n        all.append({x: None for x in range(1000000)})"),
		hook("sliced", "one = list(range(4000000))\n    all = []\n    for i in range(10000000):\n        all.append(one[:])"),
	)
}

// decodes are hooks and runs side by side that read texts; each byte makes dozens.
var decodes = []attack{
	hook("json-dicts", "all = []\n    for i in range(1000):\n        all.append(json.decode(\"[\" + \"{},\" * 900000 + \"0]\"))", "of memory, the limit of one run"),
	hook("json-dicts-kept", "all = []\n    for i in range(1000):\n        all.append(json.decode(\"[\" + \"{},\" * 90000 + \"0]\"))", "of memory, the limit of one run"),
	hook("json-values", "json.decode(\"[\" + \"1.5,\" * 3900000 + \"0]\")", "of memory, the limit of one run"),
	hook("json-keys", "json.decode(\"{\" + \",\".join(['\"k%d\":1' % i for i in range(2000000)]) + \"}\")", "of memory, the limit of one run", "join: the result would have more than"),
	hook("yaml-values", "all = []\n    for i in range(1000):\n        all.append(yaml.decode(\"- a\\n\" * 190000))", "of memory, the limit of one run"),
	decodesEach("decode-values", "json.decode(\"[\" + \"1.5,\" * 3900000 + \"0]\")"),
	decodesEach("decode-fewer", "json.decode(\"[\" + \"1.5,\" * 2500000 + \"0]\")"),
	decodesEach("decode-mixed", "json.decode(\"[\" + \"{},\" * 900000 + \"1.5,\" * 3000000 + \"0]\")"),
	decodesEach("decode-dicts", "json.decode(\"[\" + \"{},\" * 400000 + \"0]\")"),
}

// decodesEach reads a text for each of four objects, side by side.
func decodesEach(name, text string) attack {
	return attack{name: name, objects: small(4), files: map[string]string{"hooks/a.star": "def run(ctx):\n    all = " + text + "\n    print(len(all))\n\n" +
		"hook(run, for_each = \"all\", parallel = 4, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"all\", namespaces = [\"$NS\"], object_names = [\"small-%d\" % i for i in range(4)])])\n"}}
}

// Bytes are asked for before they are taken, from one budget of the process.
func TestDecodesSideBySide(t *testing.T) { underAttack(t, decodes...) }

func threeBombs(t *testing.T, bombs ...attack) {
	a := newArena(t)
	a.start()
	beats := a.beat(a.waitBeat())
	for _, bomb := range bombs {
		a.write(bomb.tree())
	}
	for _, bomb := range bombs {
		a.waitFailures(bomb, 3)
	}
	cluster.Eventually(t, soon, "the process gives memory back", func() error {
		if has := a.resident(); has > memory*2/5 {
			return fmt.Errorf("it has %d MiB", has>>20)
		}
		return nil
	})
	beats.end()
	a.stop()
}

// tree returns the files of the module by their paths in the module tree.
func (a attack) tree() map[string]string {
	files := map[string]string{a.name + "/module.star": "module(enabled = True)\n"}
	for path, text := range a.files {
		files[a.name+"/"+path] = text
	}
	return files
}

// limits are those that may stop any run: whose memory it is cannot be told, see
// script.Governor, and a machine with much else to do may let the time limit come first.
var limits = []string{"MiB of memory, the limit of one run", "the process has no room for", "the time limit of one run", "an earlier run has passed its time limit"}

// hook returns an attack by one hook that runs at the start: the body of its function, in
// which grow(n, x, step) calls step n times.
func hook(name, body string, says ...string) attack {
	const module = "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"delete\"])])\n"
	return attack{name: name, says: append(says, limits...), files: map[string]string{"module.star": module, "hooks/a.star": growing +
		"def run(ctx):\n    " + body + "\n\n" +
		"hook(run, on = [startup()], timeout = \"3s\", retry = retry(min = \"20s\", max = \"20s\"))\n"}}
}

// filter returns an attack by the filter of a watch of the ConfigMaps that the healthy
// module watches.
func filter(name, expression string, says ...string) attack {
	return attack{name: name, says: append(says, limits...), files: map[string]string{"hooks/a.star": growing + fmt.Sprintf(
		"hook(lambda ctx: None, name = \"x\", on = [k8s.watch(\"v1\", \"ConfigMap\", namespaces = [\"$NS\"], filter = lambda o: %s)])\n", expression)}}
}

// file returns an attack by a hook file that loads.
func file(name, text string, says ...string) attack {
	return attack{name: name, says: append(says, limits...), files: map[string]string{
		"hooks/a.star": growing + text + "\n\nhook(lambda ctx: None, name = \"x\", on = [startup()])\n"}}
}

const growing = "\ndef grow(n, x, step):\n    for i in range(n):\n        x = step(x)\n    return x\n\n"
