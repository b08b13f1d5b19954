package inspection

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/inspection/columns"
	"github.com/starling-operator/starling/modules/status"
)

// outputFlags say in which form a list is shown, in the words of kubectl get.
type outputFlags struct {
	format    string
	noHeaders bool
}

// formats are those of -o, as messages and help name them.
const formats = "table, wide, name, json, yaml, jsonpath=TEMPLATE or custom-columns=HEAD:PATH,…"

func (f *outputFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&f.format, "output", "o", "", "`format`: "+formats+" (default: table; of -w in a pipe json, a line per row)")
	fs.BoolVar(&f.noHeaders, "no-headers", false, "leave the head of a table out")
}

// listing is what one look has found: rows of one kind.
type listing struct {
	// kind is that of one row, for -o name, and names tell rows apart.
	kind  string
	names []string
	// rows are as -o json shows them, and so is all: the list of them, or the one that was asked for.
	rows []any
	all  any
	// table writes some of the rows.
	table func(w io.Writer, which []int, o status.Options) error
	// idle rows are left out of a table until they change; nil: none is.
	idle func(i int) bool
	// newestFirst: rows that come stand above the others.
	newestFirst bool
	// notes explain the list, and empty stands in its place, both on stderr and for people.
	notes []string
	empty string
}

// writer writes a table of rows.
type writer[T any] func(w io.Writer, rows []T, o status.Options) error

// newListing makes a listing of rows, which name tells apart.
func newListing[T any](kind string, rows []T, table writer[T], name func(T) string) *listing {
	l := &listing{kind: kind, all: append([]T{}, rows...), empty: "no " + kind + "s"} // an empty one is [], not null
	for _, row := range rows {
		l.names, l.rows = append(l.names, name(row)), append(l.rows, row)
	}
	l.table = func(w io.Writer, which []int, o status.Options) error {
		some := make([]T, len(which))
		for i, at := range which {
			some[i] = rows[at]
		}
		return table(w, some, o)
	}
	return l
}

// printer shows rows of listings in the form that -o asks for.
type printer struct {
	cmd      *cobra.Command
	format   string // table, wide, name, json, yaml, jsonpath or custom-columns
	noHead   bool
	template string // of jsonpath
	path     *printers.JSONPathPrinter
	columns  *columns.Columns
	tabs     flusher
	widths   status.Widths
}

type flusher interface {
	io.Writer
	Flush() error
}

// printer checks -o, before anybody is asked.
func (f *outputFlags) printer(cmd *cobra.Command) (*printer, error) {
	p := &printer{cmd: cmd, format: f.format, noHead: f.noHeaders}
	kind, argument, given := strings.Cut(f.format, "=")
	switch {
	case f.format == "":
		p.format = "table"
	case given && argument == "" || !given && (strings.HasPrefix(kind, "jsonpath") || kind == "custom-columns"):
		return nil, fmt.Errorf("--output %s: a template is missing, as in: -o %s", kind, exampleOf(kind))
	case strings.HasPrefix(kind, "jsonpath"):
		p.format = "jsonpath"
		return p, p.openPath(kind, argument)
	case kind == "custom-columns":
		p.format = kind
		made, err := columns.New(argument, f.noHeaders)
		if err != nil {
			return nil, fmt.Errorf("--output %s: %w; as in: -o %s", kind, err, exampleOf(kind))
		}
		p.columns, p.tabs = made, printers.GetNewTabWriter(cmd.OutOrStdout())
	case !slices.Contains([]string{"table", "wide", "name", "json", "yaml"}, f.format):
		return nil, fmt.Errorf("--output %q is not known; use %s", f.format, formats)
	}
	return p, nil
}

func exampleOf(kind string) string {
	if strings.HasPrefix(kind, "jsonpath") {
		return `jsonpath='{[*].name}'`
	}
	return "custom-columns=NAME:.name,STATE:.state"
}

// openPath reads a template. One without braces is a path, for nobody wants to see its text.
func (p *printer) openPath(kind, argument string) error {
	if kind != "jsonpath-file" && !strings.Contains(argument, "{") {
		if template, err := columns.RelaxedPath(argument); err == nil {
			argument = template
		}
	}
	made, err := genericclioptions.NewJSONPathPrintFlags("", true).ToPrinter(kind + "=" + argument)
	if err != nil {
		return fmt.Errorf("--output %s: %w; as in: -o %s", kind, err, exampleOf(kind))
	}
	path, is := made.(*printers.JSONPathPrinter)
	if !is {
		return fmt.Errorf("--output %q is not known; use %s", kind, formats)
	}
	p.path, p.template = path, argument
	return nil
}

// forPeople says whether it is read by people, who are told more on stderr.
func (p *printer) forPeople() bool { return p.format == "table" || p.format == "wide" }

// list shows a whole listing.
func (p *printer) list(l *listing) error {
	if p.forPeople() {
		command.SayNotes(p.cmd, l.notes)
		which := l.busy(p.format == "wide")
		if len(which) == 0 {
			command.Say(p.cmd, "%s", l.empty)
			return nil
		}
		return p.rows(l, which, nil)
	}
	out := p.cmd.OutOrStdout()
	switch p.format {
	case "json", "yaml":
		return status.Encode(out, p.format, l.all)
	case "jsonpath":
		shape, err := plain(l.all)
		if err != nil {
			return err
		}
		if _, isList := shape.([]any); isList && strings.Contains(p.template, "{.items") {
			return errors.New("--output jsonpath: a list is what -o json shows, without items; begin with {[*], as in: -o " + exampleOf("jsonpath"))
		}
		return p.path.Execute(out, shape)
	}
	return p.rows(l, l.busy(true), nil)
}

// busy are the rows that a table shows.
func (l *listing) busy(idleToo bool) []int {
	var which []int
	for i := range l.rows {
		if idleToo || l.idle == nil || !l.idle(i) {
			which = append(which, i)
		}
	}
	return which
}

// rows shows some rows, each by itself. events, one per row, may be nil.
func (p *printer) rows(l *listing, which []int, events []string) error {
	out := p.cmd.OutOrStdout()
	if p.forPeople() {
		return l.table(out, which, status.Options{Color: command.Colorful(p.cmd), Now: time.Now(), Wide: p.format == "wide", NoHead: p.noHead, Widths: &p.widths, Events: events})
	}
	for n, i := range which {
		if p.format == "name" {
			named := &unstructured.Unstructured{Object: map[string]any{"kind": l.kind, "metadata": map[string]any{"name": l.names[i]}}}
			if err := (&printers.NamePrinter{}).PrintObj(named, out); err != nil {
				return err
			}
			continue
		}
		row := l.rows[i]
		if events != nil {
			row = map[string]any{"type": events[n], "object": row}
		}
		if err := p.row(row); err != nil {
			return err
		}
	}
	if p.tabs != nil {
		return p.tabs.Flush()
	}
	return nil
}

// row shows one row of a list that goes on.
func (p *printer) row(row any) error {
	out := p.cmd.OutOrStdout()
	switch p.format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		return enc.Encode(row)
	case "yaml":
		if _, err := io.WriteString(out, "---\n"); err != nil {
			return err
		}
		return status.Encode(out, "yaml", row)
	}
	shape, err := plain(row)
	if err != nil {
		return err
	}
	if p.format == "jsonpath" {
		return p.path.Execute(out, shape)
	}
	return p.columns.Print(p.tabs, shape)
}

// plain is what -o json shows, as data: whole numbers stay whole.
func plain(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var shape any
	return shape, kjson.UnmarshalCaseSensitivePreserveInts(text, &shape)
}
