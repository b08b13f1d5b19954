package object

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/message"
)

// maxDifferences is how many differences people are shown.
const maxDifferences = 20

// Differences says where two values differ, a line each: "spec.replicas: got 1, want 2".
// It returns nil for values that are equal; what is no plain data is compared as text.
func Differences(got, want starlark.Value) []string {
	a, errA := ToPlain(got)
	b, errB := ToPlain(want)
	if errA != nil || errB != nil {
		if got.String() == want.String() {
			return nil
		}
		return []string{fmt.Sprintf("got %s, want %s", got, want)}
	}
	var lines []string
	d := differencesOf(a, b)
	for _, one := range d.all {
		lines = append(lines, one.line())
	}
	if len(lines) > maxDifferences {
		more := len(lines) - maxDifferences
		lines = append(lines[:maxDifferences], fmt.Sprintf("… and %d more", more))
	}
	return lines
}

// FirstDifference says where two plain values differ first, and what stands there in both, cut where it is
// long; "nothing" where one of them has nothing. There is none when they are equal.
func FirstDifference(a, b any) (path, first, second string, differ bool) {
	d := differencesOf(a, b)
	if len(d.all) == 0 {
		return "", "", "", false
	}
	one := d.all[0]
	first, second = "nothing", "nothing"
	switch {
	case one.a == nil:
		second = shown(one.b)
	case one.b == nil:
		first = shown(one.a)
	default:
		first, second = message.Apart(one.a.String(), one.b.String(), maxShown)
	}
	return one.path, first, second, true
}

// difference is one place where two values differ; nil is for nothing.
type difference struct {
	path string
	a, b starlark.Value
}

func (d *difference) line() string {
	text := ""
	switch {
	case d.a == nil:
		text = "missing, want " + shown(d.b)
	case d.b == nil:
		text = "got " + shown(d.a) + ", want none"
	default:
		x, y := message.Apart(d.a.String(), d.b.String(), maxShown)
		text = "got " + x + ", want " + y
	}
	if d.path != "" {
		text = d.path + ": " + text
	}
	return text
}

type differences struct{ all []difference }

// differencesOf compares two plain values. Most are the same, which needs no path.
func differencesOf(a, b any) (d differences) {
	if !reflect.DeepEqual(a, b) {
		d.compare("", a, b)
	}
	return d
}

func (d *differences) add(path string, a, b starlark.Value) {
	d.all = append(d.all, difference{path, a, b})
}

func (d *differences) compare(path string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.maps(path, a, b)
			return
		}
	case []any:
		if b, ok := b.([]any); ok {
			d.lists(path, a, b)
			return
		}
	}
	if va, vb := FromPlain(a), FromPlain(b); !equalValues(va, vb) {
		d.add(path, va, vb)
	}
}

func (d *differences) maps(path string, a, b map[string]any) {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := key
		if strings.ContainsAny(key, ". ") {
			at = "[" + strconv.Quote(key) + "]"
		}
		if path != "" && at == key {
			at = path + "." + key
		} else if path != "" {
			at = path + at
		}
		va, inA := a[key]
		vb, inB := b[key]
		switch {
		case !inA:
			d.add(at, nil, FromPlain(vb))
		case !inB:
			d.add(at, FromPlain(va), nil)
		default:
			d.compare(at, va, vb)
		}
	}
}

func (d *differences) lists(path string, a, b []any) {
	for i := range max(len(a), len(b)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(a):
			d.add(at, nil, FromPlain(b[i]))
		case i >= len(b):
			d.add(at, FromPlain(a[i]), nil)
		default:
			d.compare(at, a[i], b[i])
		}
	}
}

func equalValues(a, b starlark.Value) bool {
	same, err := Equal(a, b)
	return err == nil && same
}

// shown is a value as one line of a difference shows it.
func shown(v starlark.Value) string { return message.Cut(v.String(), maxShown) }

// maxShown bounds a value in one line.
const maxShown = 200
