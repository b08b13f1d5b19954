package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// hostile is a hook that asks for more than there is: the body of its function, and
// what its status must say.
type hostile struct{ name, body, says string }

// hostileHooks are one a module. Lists are grown by grow(n, x, step), which calls step n times.
var hostileHooks = []hostile{
	// Time.
	{"endless", "for i in range(10000000):\n        for j in range(10000000):\n            pass", "steps, the limit of one run"},
	{"slow", "for i in range(10000000):\n        hash.sha256(\"x\" * (1 << 20))", "3s, the time limit of one run"},
	{"recursion", "run(ctx)", "recursion is off"},
	{"mutual", "grow(9, run, lambda f: run(f))", "recursion is off"},
	{"squares", "grow(60, 1 << 500, lambda n: n * n)", "the product would have"},
	{"digits", "int(\"9\" * (1 << 24))", "int: the text has 16777216 characters"},
	{"json-digits", "json.decode(\"9\" * (1 << 24))", "a number with more than 10000 digits"},
	{"regex", "for i in range(10000000):\n        re.search(\"((a{0,100}){0,10})*b\", \"a\" * (1 << 21))", "3s, the time limit of one run"},
	{"regex-pattern", "re.search(\"(((a{0,100}){0,100}){0,100})\", \"a\")", "pattern: invalid repeat count"},
	{"regex-matches", "re.find_all(\"\", \"a\" * (1 << 21))", "re.find_all: more than"},
	{"jq-loop", "jq(1, \"def f: f; f\")", "steps limit: a jq program"},
	{"jq-range", "jq(1, \"[range(1e12)]\")", "steps limit: a jq program"},

	// Memory.
	{"text", "\"a\" * (1 << 40)", "1 bytes times 1099511627776 are too many"},
	{"doubled-text", "grow(60, \"a\" * 1000, lambda x: x + x)", "bytes together are too many"},
	{"doubled-list", "grow(60, [0], lambda x: x + x)", "elements together are too many"},
	{"doubled-now", "x = [0] * 1000\n    for i in range(60):\n        x += x", "elements are too many to be added with +="},
	{"greedy", "all = []\n    for i in range(1 << 20):\n        all.append(\"x\" * (1 << 16))", "MiB of memory, the limit of one run"},
	{"copies", "all = []\n    one = list(range(1000000))\n    for i in range(1 << 20):\n        all.append(one[:])", "MiB of memory, the limit of one run"},
	{"dicts", "all = []\n    for i in range(10000000):\n        all.append({i: i})", "the limit of one run"},
	{"range", "range(1 << 62)", "range: 4611686018427387904 elements are too many"},
	{"list-of-range", "list(range(1 << 62))", "range: 4611686018427387904 elements are too many"},
	{"max-of-range", "max(range(1 << 62))", "range: 4611686018427387904 elements are too many"},
	{"sorted", "for i in range(100):\n        sorted(range(10000000), reverse = True)", "3s, the time limit of one run"},
	{"set", "set(range(10000000))", "set: 10000000 elements are too many"},
	{"zip", "zip(*[range(10000000)] * 100)", "zip: 1000000000 elements are too many"},
	{"pieces", "list((\"a\" * (1 << 26)).elems())", "elems: 67108864 elements are too many"},
	{"replace", "s = \"a\" * (1 << 20)\n    s.replace(\"a\", s)", "replace: the result would have more than"},
	{"percent", "s = \"a\" * (1 << 20)\n    (\"%s\" * 100) % ((s,) * 100)", "%: the result would have more than"},
	{"shown", "str(grow(60, [0], lambda x: [x, x]))", "str: the result would have more than"},
	{"failing", "fail(grow(60, [0], lambda x: [x, x]))", "list that is too large to be shown"},
	{"deep", "str(grow(1000000, [], lambda x: [x]))", "more than 500 deep"},
	{"deep-value", "values.set(\"a\", grow(1000000, [], lambda x: [x]))", "nested deeper than 100"},
	{"wide-value", "values.set(\"a\", grow(60, [0], lambda x: [x, x]))", "larger than"},
	{"json-nesting", "json.decode(\"[\" * 1000000)", "json.decode: nested deeper than 1000"},
	{"json-lists", "json.decode(\"[\" + \"{},\" * (8 << 20) + \"0]\")", "json.decode: more than 1000000 lists and dicts"},
	{"yaml-nesting", "yaml.decode(\"[\" * 1000000)", "yaml.decode: exceeded max depth"},
	{"yaml-aliases", "text = \"a: &a [x,x,x,x,x,x,x,x,x]\\n\"\n    last = \"a\"\n    for c in \"bcdefghijk\".elems():\n        text += \"%s: &%s [%s]\\n\" % (c, c, \",\".join([\"*\" + last] * 9))\n        last = c\n    yaml.decode(text)", "with its aliases it makes more than"},
	{"jq-doubled", "jq([1], \"reduce range(60) as $i (.; . + .)\")", "jq: a value is larger than 32 MiB"},
	{"jq-nested", "jq([1], \"reduce range(60) as $i (.; [., .])\")", "jq: the result is larger than 32 MiB"},

	// Effects.
	{"large-value", "values.set(\"a\", \"x\" * (10 << 20))", "more than the 900 KiB that fit into a Secret"},
	{"large-values", "for i in range(10):\n        values.set(\"a%d\" % i, \"x\" * (10 << 20))", "effects limit: larger than"},
	{"many-values", "for i in range(1000000):\n        values.set(\"a%d\" % i, 1)", "effects limit: more than 10000 value changes"},
	{"many-metrics", "for i in range(1000000):\n        metrics.set(\"a\", i, labels = {\"i\": str(i)})", "effects limit: more than 10000 metric changes"},
	{"many-writes", "for i in range(1000000):\n        k8s.delete(\"v1\", \"ConfigMap\", \"none-%d\" % i)", "effects limit: more than 10000 object writes"},
	{"log-flood", "for i in range(1000000):\n        log.info(\"x\" * 1000, i = i)", "log limit: more than 1048576 bytes in one run"},
	{"log-line", "print(\"x\" * (10 << 20))", "log limit: more than 1048576 bytes in one run"},
	{"deep-path", "values.set([\"a\"] * 100000, 1)", "path has 100000 keys, more than 100"},
	{"large-state", "ctx.state.set(\"a\", \"x\" * (10 << 20))", "state"},
}

// hostileFilters are the filters of one watch each, of the objects that healthy
// modules follow too.
var hostileFilters = []hostile{
	{"filter-raises", "fail(\"no \" + o.metadata.name)", "no shared"},
	{"filter-loops", "[0 for i in range(10000000) for j in range(10000000)]", "steps, the limit of one run"},
	{"filter-doubles", "grow(60, \"a\" * 1000, lambda x: x + x)", "bytes together are too many"},
	{"filter-nests", "grow(60, [0], lambda x: [x, x])", "the filter's result: "},
	{"filter-list", "[0] * (1 << 40)", "are too many"},
}

// hostileFiles are whole hook files that cannot be loaded, by module.
var hostileFiles = []hostile{
	{"load-loops", "x = [0 for i in range(10000000) for j in range(10000000)]", "steps, the limit of one run"},
	{"load-multiplies", "x = [0] * (1 << 40)", "are too many"},
	{"load-freezes", "x = grow(60, (), lambda x: (x, x))", "holds more than 20000000 values"},
	{"load-nests", "x = " + strings.Repeat("[", 400_000) + strings.Repeat("]", 400_000), "excessive nesting"},
}

const growing = "\ndef grow(n, x, step):\n    for i in range(n):\n        x = step(x)\n    return x\n\n"

// maxResident is what the process may take at most while a dozen of them go on. The mark
// past which runs go one at a time is at 512 MiB, and whoever has the turn may grow by
// 256 MiB. Beyond that there is what one operation makes before it can be stopped, 160
// MiB and as much again while a list moves, of one run on each of two processors and of
// those that passed their last look together; then garbage, for which a busy machine
// comes late, and the program itself. Without limits a single one of these hooks takes
// more than all memory there is.
const maxResident = 3 << 30

// limits are those that may stop any of them: whose memory it is cannot be told, see
// script.Governor, and a machine with much else to do may let the time limit come first.
var limits = []string{"MiB of memory, the limit of one run", "the time limit of one run", "an earlier run has passed its time limit"}

// Hooks that ask for all the time and all the memory there is are stopped, each by a
// limit that the status names; the process stays, takes no more than it may, and the
// modules beside them converge and follow the cluster.
func TestHostileHooks(t *testing.T) { // no parallel test: it takes both processors for some minutes
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("how much memory a process takes can be read on Linux only")
	}
	n := 0
	for hooks := range slices.Chunk(hostileHooks, 12) {
		n++
		t.Run(fmt.Sprint(n), func(t *testing.T) { underAttack(t, hooks, nil, nil) })
	}
	t.Run("filters and files", func(t *testing.T) { underAttack(t, nil, hostileFilters, hostileFiles) })
}

// underAttack runs a process with some of them beside a module that is healthy.
func underAttack(t *testing.T, hooks, filters, broken []hostile) {
	files := []map[string]string{mirror("healthy", on), probe(), {"healthy/hooks/a.star": `
def follow(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(follow, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["$NS"], labels = {"e2e": "$NS"}, object_names = ["shared"],
                             filter = lambda o: o.data["text"])])
`}}
	module := "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"delete\"])])\n"
	options := ", timeout = \"3s\", retry = retry(min = \"20s\", max = \"20s\"))\n"
	for _, h := range hooks {
		timeout := options
		if !strings.Contains(h.says, "3s") {
			timeout = strings.Replace(options, "3s", "5m", 1) // of a busy machine, where it is another limit that counts
		}
		files = append(files, map[string]string{h.name + "/module.star": module,
			h.name + "/hooks/a.star": growing + "def run(ctx):\n    " + h.body + "\n\nhook(run, on = [startup()]" + timeout})
	}
	for _, h := range filters {
		files = append(files, map[string]string{h.name + "/module.star": module,
			h.name + "/hooks/a.star": growing + "def run(ctx):\n    pass\n\nhook(run, on = [k8s.watch(\"v1\", \"ConfigMap\", namespaces = [\"$NS\"], labels = {\"e2e\": \"$NS\"}, object_names = [\"shared\"], filter = lambda o: " + h.body + ")]" + options})
	}
	for _, h := range broken {
		files = append(files, map[string]string{h.name + "/module.star": module, h.name + "/hooks/a.star": growing + h.body + "\n\nhook(lambda ctx: None, name = \"x\", on = [startup()])\n"})
	}
	f := newFixture(t, trees(files...))
	f.touch("shared", "at first")
	f.start()
	f.waitLong("healthy follows", func() error { return f.mirrored("healthy", "at first") })

	for i, h := range append(slices.Clone(hooks), filters...) {
		f.waitLong("the status of "+h.name+" names the limit", func() error {
			got, err := f.lastError(h.name)
			if err != nil {
				return err
			}
			if len(got) > 5000 {
				t.Fatalf("%s has an error of %d bytes", h.name, len(got))
			}
			if slices.ContainsFunc(limits, func(limit string) bool { return strings.Contains(got, limit) }) {
				return nil
			}
			return holds(got, []string{h.says})
		})
		if i%8 == 0 { // meanwhile
			text := fmt.Sprintf("change %d", i)
			f.touch("shared", text)
			f.waitLong("healthy follows beside "+h.name, func() error { return f.mirrored("healthy", text) })
		}
	}
	for _, h := range broken {
		f.waitLong("module "+h.name+" is broken", func() error {
			m, err := f.module(h.name)
			if err == nil && m.State != status.ModuleBroken {
				err = fmt.Errorf("it is %s: %s", m.State, m.Reason)
			}
			if err != nil {
				return err
			}
			return holds(m.Reason+m.LastError+strings.Join(m.Problems, "\n"), []string{h.name + "/hooks/a.star", h.says})
		})
	}

	if len(hooks) > 0 { // after more tries of each
		f.waitLong("the first hook has failed twice", func() error {
			h, err := f.hook(hooks[0].name + "/hooks/a.star:run")
			if err == nil && h.Failures < 2 {
				err = fmt.Errorf("%d times", h.Failures)
			}
			return err
		})
	}
	f.touch("shared", "at last")
	f.waitLong("healthy follows", func() error { return f.mirrored("healthy", "at last") })
	f.probe()
	took := f.resident()
	t.Logf("the process took %d MiB at most", took>>20)
	if took > maxResident {
		t.Errorf("the process took %d MiB, at most %d are allowed", took>>20, maxResident>>20)
	}
	if code := f.process.Stop(); code != 0 {
		t.Errorf("it ended with exit code %d", code)
	}
}

// waitLong waits on a machine that hostile hooks keep busy.
func (f *fixture) waitLong(what string, check func() error) {
	f.t.Helper()
	cluster.Eventually(f.t, 2*soon, what, check)
}

// mirrored says whether the ConfigMap of a [mirror] has this text.
func (f *fixture) mirrored(name, text string) error {
	data, err := configMap(f.t, f.ns, name)
	if err == nil && data["text"] != text {
		err = fmt.Errorf("it holds %q", data["text"])
	}
	return err
}

// lastError is what `starling get hooks` shows of the one hook of a module.
func (f *fixture) lastError(module string) (string, error) {
	out, err := f.process.Get(f.t.Context(), "hooks", module)
	if err != nil {
		return "", err
	}
	var hooks []struct{ LastError string }
	if err := json.Unmarshal(out, &hooks); err != nil || len(hooks) != 1 {
		return "", fmt.Errorf("%v: %s", err, out)
	}
	if hooks[0].LastError == "" {
		return "", fmt.Errorf("no error yet: %s", out)
	}
	return hooks[0].LastError, nil
}

var highest = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// resident is the most memory that the process has had so far, in bytes.
func (f *fixture) resident() int {
	f.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.process.PID()))
	if err != nil {
		f.t.Fatal(err)
	}
	found := highest.FindSubmatch(text)
	if found == nil {
		f.t.Fatalf("no VmHWM in %s", text)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		f.t.Fatal(err)
	}
	return kib << 10
}
