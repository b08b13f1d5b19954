package inspection

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

// page is what `starling describe` shows of one thing: fields, and sections below them. It is a
// writer for what stands in a section, which it indents.
type page struct {
	out   io.Writer
	color bool
	now   time.Time
	err   error // the first one
}

func newPage(cmd *cobra.Command) *page {
	return &page{out: cmd.OutOrStdout(), color: command.Colorful(cmd), now: time.Now()}
}

func (p *page) options() status.Options { return status.Options{Color: p.color, Now: p.now} }

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// Write indents what stands in a section.
func (p *page) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		p.printf("  %s", line)
	}
	return len(text), p.err
}

// field shows one, unless it is empty.
func (p *page) field(name, value string) {
	if value = message.Clean(value); value != "" {
		p.printf("%-13s %s\n", name+":", value)
	}
}

func (p *page) state(state string) {
	if p.color {
		p.printf("%-13s %s\n", "State:", status.Colored(state))
		return
	}
	p.field("State", state)
}

// number shows one that is not 0.
func (p *page) number(name string, n int) {
	if n != 0 {
		p.field(name, fmt.Sprint(n))
	}
}

// time shows when that is, and how long ago or ahead.
func (p *page) time(name string, at *time.Time) {
	if at == nil || at.IsZero() {
		return
	}
	when := p.options().Age(*at) + " ago"
	if ahead := at.Sub(p.now); ahead > 0 {
		when = "in " + status.Options{Now: *at}.Age(p.now)
	}
	p.field(name, at.UTC().Format(time.RFC3339)+", "+when)
}

// list shows lines below a name, unless there is none.
func (p *page) list(name string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.printf("%s:\n", name)
	for _, line := range lines {
		p.printf("  %s\n", message.Clean(line))
	}
}

// section shows what show writes below a name, or that there is nothing, or why it is not known.
func (p *page) section(name string, failed error, show func() error, empty bool) {
	switch {
	case failed != nil:
		p.field(name, "not known: "+message.Line(failed.Error()))
	case empty:
		p.field(name, "none")
	default:
		p.printf("%s:\n", name)
		if err := show(); p.err == nil {
			p.err = err
		}
	}
}

// shown shows data as YAML.
func (p *page) shown(name string, v any, empty bool) {
	p.section(name, nil, func() error { return status.Encode(p, "yaml", v) }, empty)
}

// hooks shows a table of hooks of one module: HOOK STATE RUNS FAILURES LAST TOOK NEXT REASON.
func (p *page) hooks(hooks []status.Hook) error {
	rows := [][]string{{"HOOK", "STATE", "RUNS", "FAILURES", "LAST", "TOOK", "NEXT", "REASON"}}
	for _, h := range hooks {
		row := []string{h.ID, string(h.State), fmt.Sprint(h.Runs), fmt.Sprint(h.Failures), "", "", "", h.Reason}
		if h.LastRun != nil {
			row[4], row[5] = p.options().Age(*h.LastRun), status.Roughly(time.Duration(h.Duration))
		}
		next := h.NextTry
		if next == nil {
			next = h.NextRun
		}
		if next != nil {
			row[6] = status.Options{Now: *next}.Age(p.now)
		}
		if h.LastError != "" {
			row[7] = strings.TrimPrefix(row[7]+"; "+h.LastError, "; ")
		}
		rows = append(rows, row)
	}
	return status.PrintTable(p, rows, 1, p.options())
}
