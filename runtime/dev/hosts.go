package dev

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/plan"
)

// hosts answer requests with files. A simulated cluster asks nobody.
type hosts struct {
	files map[string]string // by host
	// asked are those that were asked and have no file, and whether people know that.
	asked map[string]bool
}

// unanswered begins what a hook is told whose host has no file.
const unanswered = "nobody answers http.get here"

// Gather implements [builtins.Fetcher].
func (h *hosts) Gather(_ context.Context, requests []effect.Request, _ int) []builtins.Gathered {
	return builtins.InTurn(requests, h.fetch)
}

func (h *hosts) fetch(r effect.Request) (builtins.Fetched, error) {
	host, err := r.Host()
	if err != nil {
		return builtins.Fetched{}, err
	}
	file := h.files[host]
	if file == "" {
		if _, known := h.asked[host]; !known {
			h.asked[host] = false
		}
		return builtins.Fetched{}, &builtins.NoAnswerError{Reason: fmt.Sprintf("%s: --http %s=FILE says what %s answers", unanswered, host, host)}
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return builtins.Fetched{}, fmt.Errorf("--http %s: cannot %w", host, err)
	}
	return builtins.Fetched{Status: 200, Headers: map[string]string{}, Body: body}, nil
}

// news are the hosts that people do not know yet to be asked in vain.
func (h *hosts) news() []string {
	var out []string
	for host, reported := range h.asked {
		if !reported {
			out = append(out, host)
			h.asked[host] = true
		}
	}
	slices.Sort(out)
	return out
}

// spare takes out of a plan what fails for want of an answer: it fails in each round,
// whatever is saved.
func spare(p *plan.Plan) {
	p.Problems = slices.DeleteFunc(p.Problems, func(one plan.Problem) bool { return strings.Contains(one.Error, unanswered) })
	for i := range p.Modules {
		if m := &p.Modules[i]; strings.Contains(m.Error, unanswered) {
			m.Error = ""
		}
	}
	p.Modules = slices.DeleteFunc(p.Modules, func(m plan.Module) bool { return m.Action == plan.None && m.Error == "" })
}
