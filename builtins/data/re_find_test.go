package data

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Matches that are looked for rune by rune are those of the library.
func TestMatchesAreTheLibrarysOwn(t *testing.T) {
	patterns := []string{
		"", "a", "a*", "a*?", "(a|b)+", "(a)|(b)", "^a", "(?m)^a", "a$", "(?m)a$", `\b`, `\b\w+\b`, `\B`, "(?i)A", "(?s).", ".", "(a*)(b*)?", "(?P<x>é)", `\A`, `\z`, "$", "^",
		"[^a]", "(?U)a+", "aa|a", "|a", "(|a)*", "x*", "é*", "\uFFFD", "(?:a|ab)(?:c|bcd)", `\n`, "(^|b)a",
	}
	pieces := []string{"a", "b", "A", "é", "\n", " ", "\xff", "\xe2\x82", "世", "c", "d"}
	r := rand.New(rand.NewPCG(1, 1))
	found := 0
	for _, src := range patterns {
		p, err := newPattern(src)
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			var text strings.Builder
			for range r.IntN(12) {
				text.WriteString(pieces[r.IntN(len(pieces))])
			}
			most := r.IntN(5) - 1
			if most == 0 {
				most = 1
			}
			p.size = 1 << 40
			if text.Len() == 0 {
				continue
			}
			got, err := p.find(t.Context(), text.String(), most)
			want := p.FindAllStringSubmatchIndex(text.String(), most)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q in %q, at most %d: %v, %v, want %v", src, text.String(), most, got, err, want)
			}
			found += len(got)
		}
	}
	if found < 1000 {
		t.Errorf("%d matches: the texts test too little", found)
	}
}

// A match that would take minutes ends with its run, and so do matches that together would.
func TestAMatchEndsWithItsRun(t *testing.T) {
	over := errors.New("over")
	for _, src := range []string{"((a{0,100}){0,10})*b", "(a|aa|aaa|b){0,900}c", "a*b|a", "a{0,200}b|a"} {
		p, err := newPattern(src)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, over)
		defer stop()
		for _, n := range []int{maxMatched, quickMatch / p.size} {
			if _, err := p.find(ctx, strings.Repeat("a", n), -1); !errors.Is(err, over) {
				t.Errorf("%s, %d: %v", src, n, err)
			}
		}
	}
}
