package hostile

// attacks are all rows, in the order in which they share processes.
func attacks() []attack {
	var all []attack
	for _, some := range [][]attack{hookMemory, charts, yamls} {
		all = append(all, some...)
	}
	return all
}

// hookMemory are hooks that ask for memory.
var hookMemory = []attack{
	hook("doubled-text", `grow(60, "a" * 1000, lambda x: x + x)`, "bytes together are too many"),
	hook("doubled-list", `grow(60, [0], lambda x: x + x)`, "elements together are too many"),
	hook("greedy", "all = []\nfor i in range(1 << 20):\n    all.append(\"x\" * (1 << 16))"),
	filter("filter-doubles", `grow(60, "a" * 1000, lambda x: x + x)`, "bytes together are too many"),
	file("load-multiplies", "x = [0] * (1 << 40)", "are too many"),
}
