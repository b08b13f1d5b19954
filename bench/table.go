package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// row is one measured thing.
type row struct {
	what, starling, bare, ratio, aim string
}

// table collects what was measured.
type table struct{ rows []row }

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

func (b *bench) addRow(r row) { b.table.rows = append(b.table.rows, r) }

// add adds a row of Starling alone.
func (b *bench) add(what, value, aim string) { b.addRow(row{what: what, starling: value, aim: aim}) }

// addExact adds a row of a count that has to be as many.
func (b *bench) addExact(what string, n, aim int) {
	b.add(what, fmt.Sprint(n), verdict(fmt.Sprint(aim), n == aim))
}

// addBeside adds a row of both sides. most is what their ratio may be; 0: anything.
func addBeside[T ~int64](b *bench, what string, show func(T) string, ours, bare T, most float64) {
	ratio := float64(ours) / float64(bare)
	r := row{what: what, starling: show(ours), bare: show(bare), ratio: times(ratio)}
	if most > 0 {
		r.aim = verdict(fmt.Sprintf("≤ %g×", most), ratio <= most)
	}
	b.addRow(r)
}

// addPart adds a row of one percentile of both sides. what has a verb for which one it is, and of how many.
func (b *bench) addPart(at part, what string, ours, bare []time.Duration, most float64) {
	what = fmt.Sprintf(what, fmt.Sprintf("%s of %d", at.name, len(ours)))
	addBeside(b, what, millis, percentile(ours, at.part), percentile(bare, at.part), most)
}

// addParts adds the rows of p50 and p99, each with its aim.
func (b *bench) addParts(what string, ours, bare []time.Duration, p50, p99 float64) {
	for i, most := range []float64{p50, p99} {
		b.addPart(parts()[i], what, ours, bare, most)
	}
}

// verdict appends to an aim whether it was met.
func verdict(aim string, met bool) string {
	if met {
		return aim + ": met"
	}
	return aim + ": missed"
}

// part is a percentile by its name.
type part struct {
	name string
	part float64
}

func parts() []part { return []part{{"p50", 0.5}, {"p99", 0.99}} }

// percentile returns the smallest value that at least this part of all values does
// not exceed.
func percentile[T time.Duration | float64](values []T, part float64) T {
	sorted := slices.Sorted(slices.Values(values))
	i := int(part*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func middle[T time.Duration | float64](values []T) T { return percentile(values, 0.5) }

func times(r float64) string { return fmt.Sprintf("%.2f×", r) }

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

func micros(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

func perSecond(r float64) string { return fmt.Sprintf("%.0f/s", r) }

func percent(part float64) string { return fmt.Sprintf("%.2f %%", 100*part) }

func wholeSeconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
