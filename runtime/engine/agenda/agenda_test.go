package agenda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Each script touches modules by a letter, and takes the next one with "." or, of those that are
// not in the tree, with "!". Upper case is not in the tree.
func TestLooksComeInSweeps(t *testing.T) {
	for script, want := range map[string]string{
		"..":          "- -",
		"cab...":      "a b c",
		"aaa..":       "a -",
		"x.":          "-",
		"bd.a.c.a...": "b d a c a -",
		"bd.bd..b...": "b d b b - -",
		"bd..a..":     "b d a -",
		"YaXb..!!!":   "a b X Y -",
		"XY!a.Xb.!!!": "X a b Y X -",
		"XY!!Y!X!X!":  "X Y Y X X",
		"XY!!.!X!!":   "X Y - - X -",
	} {
		a := New()
		a.Arrange([]string{"a", "b", "c", "d"}, []string{"X", "Y"})
		var got []string
		for _, c := range script {
			took := ""
			switch c {
			case '.':
				took = a.Next()
			case '!':
				took = a.NextOther()
			default:
				a.Touch(string(c))
				continue
			}
			if took == "" {
				took = "-"
			}
			got = append(got, took)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s gives %s, want %s", script, strings.Join(got, " "), want)
		}
	}
}

func TestAnotherOrderForgetsLooksAndNoTime(t *testing.T) {
	a := New()
	a.Arrange([]string{"a", "b"}, nil)
	a.Touch("a")
	a.Set(Module("b"), noon)
	a.Arrange([]string{"b"}, []string{"a"})
	if got := a.Next() + a.NextOther(); got != "" {
		t.Errorf("%s is looked at", got)
	}
	if !a.At(Module("b")).Equal(noon) || fmt.Sprint(a.Tree(), a.Others()) != "[b] [a]" {
		t.Errorf("at %s, order %v %v", a.At(Module("b")), a.Tree(), a.Others())
	}
	a.Touch("a")
	if a.Next() != "" || a.NextOther() != "a" {
		t.Error("one that has left is not the last")
	}
}

func TestTheTimeOfAModuleThatHasMovedIsSetAnew(t *testing.T) {
	a := New()
	a.Arrange([]string{"a", "b"}, nil)
	a.Set(Module("a"), noon)
	a.Touch("b")
	a.Moved("a")
	a.Moved("a")
	for _, want := range []string{"a", "b", ""} {
		if got := a.Unknown(); got != want {
			t.Fatalf("unknown is %q, want %q", got, want)
		}
		if want != "" {
			a.Set(Module(want), time.Time{})
		}
	}
	if a.Len() != 0 || !a.Soonest().IsZero() || a.Next() != "b" || a.Next() != "" {
		t.Error("something is left, or b is not looked at alone")
	}
	// Nobody knows whether one that has moved is due.
	a.Moved("a")
	if id, due := a.Due(noon); !due || id != Module("a") || a.Unknown() != "" {
		t.Errorf("due %t: %v", due, id)
	}
}

// All that falls due at one time comes in one order, in whichever it was set.
func TestTimesComeInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, want := New(), map[lane.ID]time.Time{}
		for range 60 {
			id := lane.ID{Group: string(rune('a' + r.IntN(4))), Key: []string{"", "x", "y"}[r.IntN(3)]}
			at := noon.Add(time.Duration(r.IntN(5)) * time.Second)
			if r.IntN(4) == 0 {
				at = time.Time{}
			}
			a.Set(id, at)
			if want[id] = at; at.IsZero() {
				delete(want, id)
			}
		}
		var all []string
		for id, at := range want {
			if !a.At(id).Equal(at) {
				t.Fatalf("%v is due at %s, want %s", id, a.At(id), at)
			}
			all = append(all, at.Sub(noon).String()+id.Group+"/"+id.Key)
		}
		slices.Sort(all)
		if a.Len() != len(all) {
			t.Fatalf("%d times, want %d", a.Len(), len(all))
		}
		var got []string
		for !a.Soonest().IsZero() {
			at := a.Soonest()
			if _, due := a.Due(at.Add(-time.Nanosecond)); due {
				t.Fatal("due too early")
			}
			id, due := a.Due(at)
			if !due || !a.At(id).IsZero() {
				t.Fatalf("%v is due: %t, and stays until %s", id, due, a.At(id))
			}
			got = append(got, at.Sub(noon).String()+id.Group+"/"+id.Key)
		}
		if !slices.Equal(got, all) {
			t.Fatalf("got %v, want %v", got, all)
		}
	}
}
