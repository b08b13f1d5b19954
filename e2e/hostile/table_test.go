package hostile

import "strings"

// attacks are all rows, in the order in which they share processes.
func attacks() []attack {
	var all []attack
	for _, some := range [][]attack{hookMemory, hookTime, hookEffects, filters, files, sources, charts, yamls, others, shares, watches} {
		all = append(all, some...)
	}
	return all
}

// hookMemory are hooks that fill the memory, in steps or at once.
var hookMemory = []attack{
	hook("list-of-lists", "all = []\n    for i in range(10000000):\n        all.append([0] * 4000000)"),
	hook("longer-list", "all = []\n    for i in range(10000000):\n        for j in range(10000000):\n            all.append(None)"),
	hook("longer-dict", "all = {}\n    for i in range(10000000):\n        all[i] = None"),
	hook("texts", "all = []\n    for i in range(10000000):\n        all.append(\"a\" * (1 << 24))"),
	hook("longer-texts", "all = []\n    s = \"a\" * ((1 << 24) - 1)\n    for i in range(10000000):\n        all.append(s + \"b\")"),
	hook("replaced", "all = []\n    for i in range(10000000):\n        all.append((\"a\" * (1 << 20)).replace(\"a\", \"0123456789abcdef\"))"),
	hook("joined", "all = []\n    for i in range(10000000):\n        all.append(\"b\".join([\"a\" * (1 << 20)] * 15))"),
	hook("formatted", "all = []\n    for i in range(10000000):\n        all.append((\"{0}\" * 15).format(\"a\" * (1 << 20)) + \"%s\" % (\"a\" * (1 << 20)))"),
	hook("sets", "all = []\n    for i in range(10000000):\n        all.append(set(range(500000)) | set(range(500000, 1000000)))"),
	hook("extended", "all = []\n    for i in range(10000000):\n        all.extend(range(4000000))"),
	hook("items", "all = []\n    d = {i: i for i in range(200000)}\n    for i in range(10000000):\n        all.append(d.items())"),
	hook("pieces-of-bytes", "all = []\n    for i in range(10000000):\n        all.append(list(bytes(\"a\" * 2000000).elems()))"),
	hook("key", "{}[\"\\x00\" * (1 << 24)]", "key"),
	hook("nested-key", "{grow(3000000, (), lambda x: (x,)): 1}", "more than 1000 deep"),
	hook("printed", "print(*[\"a\" * (1 << 24)] * 1000000)", "log limit: more than 1048576 bytes in one run"),
	hook("logged", "log.info(\"x\", **{\"k%d\" % i: \"a\" * (1 << 20) for i in range(10)})", "log limit: more than 1048576 bytes in one run"),
	hook("jq-texts", "jq(1, \"[range(100000) | \\\"a\\\" * 30000000]\")"),
	hook("jq-lists", "jq(1, \"[range(10) | [range(300000)]]\")", "jq: "),
	hook("holds-itself", "d = {}\n    d[\"d\"] = d\n    values.set(\"a\", d)", "holds itself"),
	hook("holds-itself-json", "d = {}\n    d[\"d\"] = d\n    json.encode(d)", "holds itself"),
	hook("holds-itself-printed", "d = {}\n    d[\"d\"] = d\n    print(d)\n    str([d])\n    fail(d)", "more than 500 deep"),
	hook("text", "\"a\" * (1 << 40)", "1 bytes times 1099511627776 are too many"),
	hook("doubled-text", "grow(60, \"a\" * 1000, lambda x: x + x)", "bytes together are too many"),
	hook("doubled-list", "grow(60, [0], lambda x: x + x)", "elements together are too many"),
	hook("doubled-now", "x = [0] * 1000\n    for i in range(60):\n        x += x", "elements are too many"),
	hook("greedy", "all = []\n    for i in range(1 << 20):\n        all.append(\"x\" * (1 << 16))", "MiB of memory, the limit of one run"),
	hook("copies", "all = []\n    one = list(range(1000000))\n    for i in range(1 << 20):\n        all.append(one[:])", "MiB of memory, the limit of one run"),
	hook("comprehension", "[None for x in range(10000000) for y in range(10000000)]"),
	hook("mapping", "{x * 10000000 + y: None for x in range(10000000) for y in range(10000000)}"),
	hook("dicts", "all = []\n    for i in range(10000000):\n        all.append({i: i})", "the limit of one run"),
	hook("range", "range(1 << 62)", "range: 4611686018427387904 elements are too many"),
	hook("list-of-range", "list(range(1 << 62))", "range: 4611686018427387904 elements are too many"),
	hook("max-of-range", "max(range(1 << 62))", "range: 4611686018427387904 elements are too many"),
	hook("sorted", "for i in range(100):\n        sorted(range(4000000), reverse = True)", "3s, the time limit of one run"),
	hook("set", "set(range(10000000))", "set: 10000000 elements are too many"),
	hook("zip", "zip(*[range(10000000)] * 100)", "zip: 1000000000 elements are too many"),
	hook("pieces", "list((\"a\" * (1 << 24)).elems())", "elems: 16777216 elements are too many"),
	hook("replace", "s = \"a\" * (1 << 20)\n    s.replace(\"a\", s)", "replace: the result would have more than"),
	hook("percent", "s = \"a\" * (1 << 20)\n    (\"%s\" * 100) % ((s,) * 100)", "%: the result would have more than"),
	hook("shown", "str(grow(60, [0], lambda x: [x, x]))", "str: the result would have more than"),
	hook("failing", "fail(grow(60, [0], lambda x: [x, x]))", "list that is too large to be shown"),
	hook("deep", "str(grow(1000000, [], lambda x: [x]))", "more than 500 deep"),
	hook("deep-value", "values.set(\"a\", grow(1000000, [], lambda x: [x]))", "nested deeper than 100"),
	hook("wide-value", "values.set(\"a\", grow(60, [0], lambda x: [x, x]))", "larger than"),
	hook("json-nesting", "json.decode(\"[\" * 1000000)", "json.decode: nested deeper than 1000"),
	hook("json-lists", "json.decode(\"[\" + \"{},\" * (5 << 20) + \"0]\")", "json.decode: more than 1000000 lists and dicts"),
	hook("yaml-nesting", "yaml.decode(\"[\" * 1000000)", "yaml.decode: "),
	hook("yaml-aliases", "text = \"a: &a [x,x,x,x,x,x,x,x,x]\\n\"\n    last = \"a\"\n    for c in \"bcdefghijk\".elems():\n        text += \"%s: &%s [%s]\\n\" % (c, c, \",\".join([\"*\" + last] * 9))\n        last = c\n    yaml.decode(text)", "with its aliases it makes more than"),
	hook("jq-doubled", "jq([1], \"reduce range(60) as $i (.; . + .)\")", "jq: a value is larger than 32 MiB"),
	hook("jq-nested", "jq([1], \"reduce range(60) as $i (.; [., .])\")", "jq: the result is larger than 32 MiB"),
}

// hookTime are hooks that do not end.
var hookTime = []attack{
	hook("endless", "for i in range(10000000):\n        for j in range(10000000):\n            pass", "steps, the limit of one run"),
	hook("slow", "for i in range(10000000):\n        hash.sha256(\"x\" * (1 << 20))", "3s, the time limit of one run"),
	hook("recursion", "run(ctx)", "recursion is off"),
	hook("mutual", "grow(9, run, lambda f: run(f))", "recursion is off"),
	hook("squares", "grow(60, 1 << 500, lambda n: n * n)", "the product would have"),
	hook("digits", "int(\"9\" * (1 << 24))", "int: the text has 16777216 characters"),
	hook("json-digits", "json.decode(\"9\" * (1 << 24))", "a number with more than 10000 digits"),
	hook("regex", "re.search(\"((a{0,100}){0,10})*b\", \"a\" * (1 << 21))", "3s, the time limit of one run"),
	hook("compares", "grow(8, [0], lambda x: [x] * 10) == grow(8, [0], lambda x: [x] * 10)", "more than 10000000 values would be compared"),
	hook("searches", "grow(8, [0], lambda x: [x] * 10) in [grow(8, [0], lambda x: [x] * 10)]", "more than 10000000 values would be compared"),
	hook("sorts-tuples", "sorted([grow(6, (0,), lambda x: x * 10)] * 1000000)", "3s, the time limit of one run"),
	hook("largest", "max([grow(6, (0,), lambda x: x * 10)] * 1000000)", "3s, the time limit of one run"),
	hook("hashes-tuples", "set([grow(6, (0,), lambda x: x * 10)] * 1000000)", "holds more than 1000 values"),
	hook("same-hash", "set([i << 32 for i in range(1000000)])", "3s, the time limit of one run"),
	hook("regex-pattern", "re.search(\"(((a{0,100}){0,100}){0,100})\", \"a\")", "pattern: invalid repeat count"),
	hook("regex-matches", "re.find_all(\"\", \"a\" * (1 << 21))", "re.find_all: more than"),
	hook("jq-loop", "jq(1, \"def f: f; f\")", " limit: a jq program"),
	hook("jq-range", "jq(1, \"[range(1e12)]\")", " limit: a jq program"),
}

// hookEffects are hooks that ask for too much to be done.
var hookEffects = []attack{
	hook("large-value", "values.set(\"a\", \"x\" * (10 << 20))", "more than the 900 KiB that fit into a Secret"),
	hook("large-values", "for i in range(10):\n        values.set(\"a%d\" % i, \"x\" * (10 << 20))", "effects limit: larger than"),
	hook("many-values", "for i in range(1000000):\n        values.set(\"a%d\" % i, 1)", "effects limit: more than 10000 value changes"),
	hook("many-metrics", "for i in range(1000000):\n        metrics.set(\"a\", i, labels = {\"i\": str(i)})", "effects limit: more than 10000 metric changes"),
	hook("many-writes", "for i in range(1000000):\n        k8s.delete(\"v1\", \"ConfigMap\", \"none-%d\" % i)", "effects limit: more than 10000 object writes"),
	hook("log-flood", "for i in range(1000000):\n        log.info(\"x\" * 1000, i = i)", "log limit: more than 1048576 bytes in one run"),
	hook("log-line", "print(\"x\" * (10 << 20))", "log limit: more than 1048576 bytes in one run"),
	hook("deep-path", "values.set([\"a\"] * 100000, 1)", "path has 100000 keys, more than 100"),
	hook("large-state", "ctx.state.set(\"a\", \"x\" * (10 << 20))", "state"),
}

// filters are the filters of one watch each, of the objects that the healthy module watches.
var filters = []attack{
	filter("filter-raises", "fail(\"no \" + o.metadata.name)", "no "),
	filter("filter-loops", "[0 for i in range(10000000) for j in range(10000000)]", "steps, the limit of one run"),
	filter("filter-doubles", "grow(60, \"a\" * 1000, lambda x: x + x)", "bytes together are too many"),
	filter("filter-nests", "grow(60, [0], lambda x: [x, x])", "the filter's result: "),
	filter("filter-compares", "grow(8, [0], lambda x: [x] * 10) == grow(8, [0], lambda x: [x] * 10)", "more than 10000000 values would be compared"),
	filter("filter-list", "[0] * (1 << 40)", "are too many"),
}

// files are hook files that cannot be loaded.
var files = []attack{
	file("load-loops", "x = [0 for i in range(10000000) for j in range(10000000)]", "steps, the limit of one run"),
	file("load-multiplies", "x = [0] * (1 << 40)", "are too many"),
	file("load-freezes", "x = grow(60, (), lambda x: (x, x))", "holds more than"),
	file("load-nests", "x = "+strings.Repeat("[", 400_000)+strings.Repeat("]", 400_000), "excessive nesting"),
}

// sources are hook files and module.stars that take too much to compile, to load, or to ask.
var sources = []attack{
	file("load-sum-1", "x = 1\ny = x"+strings.Repeat("+x", 500_000), "more than 2000 deep"),
	file("load-sum-2", "x = 1\ny = x"+strings.Repeat("+x", 500_001), "more than 2000 deep"),
	file("load-sum-3", "x = 1\ny = x"+strings.Repeat("+x", 500_002), "more than 2000 deep"),
	file("load-calls", "x = grow"+strings.Repeat("()", 500_000), "more than 2000 deep"),
	file("load-names", "x = ["+strings.Repeat("x,", 500_000)+"]", "the file has more than 400000 names"),
	file("load-lists", "x = [[0] * 4000000 for i in range(1000000)]"),
	file("load-texts", "x = [\"a\" * (1 << 24) for i in range(1000000)]"),
	file("load-holds-itself", "x = {}\nx[1] = x\nfail(x)", "too large to be shown"),
	{name: "load-module", says: limits, files: map[string]string{"module.star": "module(enabled = True)\nx = [[0] * 4000000 for i in range(1000000)]\n"}},
	{name: "enabled", says: limits, files: map[string]string{"module.star": "def enabled():\n    return len([[0] * 4000000 for i in range(1000000)]) > 0\n\nmodule(enabled = True)\n"}},
}
