package object

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// refuse: the API server takes no element of this key twice.
func refuse([]any, []int) joined {
	return joined{refused: true, invalid: true, text: "the API server refuses it; leave one out"}
}

// once: elements of this key say nothing but their key, or the last one says what counts.
func once(list []any, which []int) joined {
	last := which[len(which)-1]
	for _, i := range which {
		if !reflect.DeepEqual(list[i], list[last]) {
			return joined{one: list[last], at: last, text: "the last one is applied; leave the others out"}
		}
	}
	return joined{one: list[which[0]], at: which[0], text: "it is applied once; leave the others out"}
}

// lastCounts makes one variable of several of a name, as the kubelet does: the last one counts. $(NAME) in a variable
// before it, or in itself, means the one before: the value of that one takes its place.
func lastCounts(list []any, which []int) joined {
	last := which[len(which)-1]
	j := joined{one: list[last], at: last, others: map[int]any{}, text: "the last one counts, and is applied; leave the others out"}
	if optional(list[last]) {
		j.refused, j.text = true, "the last one may be absent, and then the one before counts: server-side apply cannot say that; leave one out"
		return j
	}
	name := fmt.Sprint(list[last].(map[string]any)["name"])
	var before map[string]any
	for i := which[0]; i <= last; i++ {
		variable, _ := list[i].(map[string]any)
		text, _ := variable["value"].(string)
		value, refers, known := expand(text, name, before)
		if refers && !known && (i == last || !slices.Contains(which, i)) {
			j.refused, j.text = true, fmt.Sprintf("%v refers to the one before: server-side apply cannot say that; "+
				"give that one another name", variable["name"])
			return j
		}
		if refers && known {
			variable = maps.Clone(variable)
			variable["value"] = value
			j.others[i] = variable
		}
		if slices.Contains(which, i) {
			before = variable
		}
	}
	if final, changed := j.others[last]; changed {
		j.one = final
	}
	return j
}

// optional says of a variable that it is left out when what it is read from is absent.
func optional(variable any) bool {
	source, _ := variable.(map[string]any)["valueFrom"].(map[string]any)
	for _, from := range source {
		if ref, _ := from.(map[string]any); ref["optional"] == true {
			return true
		}
	}
	return false
}

// expand puts the value of the variable before in place of each $(NAME) of a text, as the kubelet does: $$ stands for
// one $. known is false when the value cannot be told, for it is read from elsewhere, or refers to others.
func expand(text, name string, before map[string]any) (out string, refers, known bool) {
	value, _ := before["value"].(string)
	var b strings.Builder
	for rest := text; rest != "" && before != nil; {
		after, is := strings.CutPrefix(rest, "$("+name+")")
		n := 1
		switch {
		case is:
			b.WriteString(value)
			refers, rest = true, after
			continue
		case strings.HasPrefix(rest, "$$"):
			n = 2
		}
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	return b.String(), refers, before["valueFrom"] == nil && !strings.Contains(value, "$")
}

// sameHost makes one entry of several of an address: /etc/hosts gets the names of all.
func sameHost(list []any, which []int) joined {
	one := maps.Clone(list[which[0]].(map[string]any))
	names, _ := one["hostnames"].([]any)
	names = slices.Clone(names)
	for _, i := range which[1:] {
		more, _ := list[i].(map[string]any)["hostnames"].([]any)
		names = append(names, more...)
	}
	one["hostnames"] = names
	return joined{one: one, at: which[0], text: "one entry with the names of all is applied; join them"}
}

// samePort makes one port of several of a number and protocol: what one does not say, another may. Of several names
// the last one stays. A port on the host is another one.
func samePort(list []any, which []int) joined {
	at := which[len(which)-1]
	j := joined{at: at, text: "one port is applied; join them"}
	one := maps.Clone(list[at].(map[string]any))
	for _, i := range slices.Backward(which[:len(which)-1]) {
		for field, v := range list[i].(map[string]any) {
			have, there := one[field]
			switch {
			case !there:
				one[field] = v
			case field == "name" && have != v:
				j.lost = append(j.lost, fmt.Sprint(v))
				j.text = fmt.Sprintf("the last one is applied, named %v; leave the others out", have)
			case field != "name" && fmt.Sprint(have) != fmt.Sprint(v):
				j.refused, j.text = true, "they differ in "+field+", which server-side apply cannot say; leave one out"
			}
		}
	}
	j.one = one
	return j
}

// byNumber is a container whose probes and handlers have the number of a port where they have a name that is lost.
func byNumber(container map[string]any, r Repeated) map[string]any {
	number, err := strconv.ParseInt(r.Value, 10, 64)
	if err != nil {
		return container
	}
	container = maps.Clone(container)
	for _, field := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
		if v, there := container[field]; there {
			container[field] = withNumber(v, r.Lost, number)
		}
	}
	return container
}

func withNumber(v any, lost []string, number int64) any {
	m, is := v.(map[string]any)
	if !is {
		return v
	}
	m = maps.Clone(m)
	for key, inner := range m {
		if name, is := inner.(string); is && key == "port" && slices.Contains(lost, name) {
			m[key] = number
		} else {
			m[key] = withNumber(inner, lost, number)
		}
	}
	return m
}
