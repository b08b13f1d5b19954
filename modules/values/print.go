package values

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/starling-operator/starling/runtime/message"
)

// PrintOptions say how an [Explanation] is shown.
type PrintOptions struct {
	// Color dims what is overridden.
	Color bool
	// Now is what ages of runs are counted from; zero: they are not shown.
	Now time.Time
	// Chain shows what each value overrides, too.
	Chain bool
	// Process is that of the [Explanation].
	Process string
}

const (
	// maxShownValue bounds a value in a table of many, maxShownOne in that of one.
	maxShownValue, maxShownOne = 48, 160

	dim, plainAgain = "\x1b[2m", "\x1b[0m"
)

// Print writes a table of entries: PATH VALUE FROM WHERE, a line each; with
// [PrintOptions].Chain more lines follow for what a value overrides.
func Print(w io.Writer, entries []Entry, o PrintOptions) error {
	most := maxShownValue
	if o.Chain {
		most = maxShownOne
	}
	rows := [][4]string{{"PATH", "VALUE", "FROM", "WHERE"}}
	faint := map[int]bool{}
	for _, e := range entries {
		rows = append(rows, [4]string{e.Path, shown(e.Value, e.Removed, most), e.Chain[0].From(), e.Chain[0].Source.where(o)})
		if !o.Chain {
			continue
		}
		for _, s := range e.Chain[1:] {
			faint[len(rows)] = true
			rows = append(rows, [4]string{"", shown(s.Value, s.Removed, most), s.From(), s.Source.where(o)})
		}
	}
	var width [4]int
	for i := range rows {
		for j := range rows[i] {
			rows[i][j] = printable(rows[i][j])
			width[j] = max(width[j], utf8.RuneCountInString(rows[i][j]))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		line := ""
		for j, cell := range row {
			line += fmt.Sprintf("%-*s   ", width[j], cell)
		}
		line = strings.TrimRight(line, " ")
		if o.Color && faint[i] {
			line = dim + line + plainAgain
		}
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// where is [Source.Place] with the run.
func (s Source) where(o PrintOptions) string {
	place := s.Place()
	var run string
	switch {
	case s.Hook == "":
		return place
	case s.Run == 0:
		run = "kept from before a restart"
	default:
		run = "run "
		if o.Process != "" {
			run += o.Process + "-"
		}
		run += strconv.FormatUint(s.Run, 10)
		if s.At != nil && !o.Now.IsZero() {
			run += ", " + ago(o.Now.Sub(*s.At)) + " ago"
		}
	}
	if place == "" {
		return run
	}
	return place + ", " + run
}

// ago is a duration as kubectl rounds it.
func ago(d time.Duration) string {
	switch d = max(0, d); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// shown is a value as JSON, cut to its first characters.
func shown(v any, removed bool, most int) string {
	if removed {
		return "(removed)"
	}
	return message.Fit(message.JSON(v), most)
}

// printable keeps what came from files and the cluster from steering the terminal.
func printable(s string) string { return message.Clean(s) }
