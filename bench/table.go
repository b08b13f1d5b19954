package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// row is one measured thing.
type row struct {
	what, starling, bare, ratio, aim string
}

// table collects what was measured.
type table struct{ rows []row }

func (t *table) add(r row) { t.rows = append(t.rows, r) }

func (t *table) print(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tstarling\tbare\tratio\taim")
	for _, r := range t.rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.what, r.starling, r.bare, r.ratio, r.aim)
	}
	tw.Flush()
}

// verdict appends to an aim whether it was met.
func verdict(aim string, met bool) string {
	if met {
		return aim + ": met"
	}
	return aim + ": missed"
}

func times(r float64) string { return fmt.Sprintf("%.2f×", r) }

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func micros(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func perSecond(r float64) string { return fmt.Sprintf("%.0f/s", r) }

func percent(part float64) string { return fmt.Sprintf("%.2f %%", 100*part) }
