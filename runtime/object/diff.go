package object

import (
	"fmt"
	"maps"
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
	d := &differences{}
	d.compare("", a, b)
	if len(d.lines) > maxDifferences {
		more := len(d.lines) - maxDifferences
		d.lines = append(d.lines[:maxDifferences], fmt.Sprintf("… and %d more", more))
	}
	return d.lines
}

type differences struct{ lines []string }

func (d *differences) add(path, format string, a ...any) {
	line := fmt.Sprintf(format, a...)
	if path != "" {
		line = path + ": " + line
	}
	d.lines = append(d.lines, line)
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
		x, y := message.Apart(va.String(), vb.String(), maxShown)
		d.add(path, "got %s, want %s", x, y)
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
			d.add(at, "missing, want %s", shown(FromPlain(vb)))
		case !inB:
			d.add(at, "got %s, want none", shown(FromPlain(va)))
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
			d.add(at, "missing, want %s", shown(FromPlain(b[i])))
		case i >= len(b):
			d.add(at, "got %s, want none", shown(FromPlain(a[i])))
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
