// Package columns prints rows as kubectl get -o custom-columns= does. Its test asks kubectl's own printer, which takes
// long to initialize: it would do so in each process of the tests of the command line.
package columns

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// Columns are those of kubectl get -o custom-columns=, which has them in a package that
// would make the image half a MiB larger; a test holds both to the same output.
type Columns struct {
	heads []string // nil once they are written, or without a head
	paths []*jsonpath.JSONPath
}

// relaxed is a path with or without braces, and with or without the first dot.
var relaxed = regexp.MustCompile(`^\{\.?([^{}]+)\}$|^\.?([^{}]+)$`)

// RelaxedPath makes a path a template: .name, name and {.name} are {.name}. It fails where braces do not pair.
func RelaxedPath(path string) (string, error) {
	m := relaxed.FindStringSubmatch(path)
	if m == nil {
		return "", fmt.Errorf("%q is no path, which is like .release.revision", path)
	}
	return "{." + m[1] + m[2] + "}", nil
}

// New reads HEAD:PATH,HEAD:PATH. An error names the column or path that cannot be read.
func New(spec string, noHead bool) (*Columns, error) {
	c := &Columns{}
	for i, column := range strings.Split(spec, ",") {
		head, path, is := strings.Cut(column, ":")
		if !is {
			return nil, fmt.Errorf("%q is no HEAD:PATH", column)
		}
		template, err := RelaxedPath(path)
		if err != nil {
			return nil, err
		}
		parsed := jsonpath.New(fmt.Sprintf("column%d", i)).AllowMissingKeys(true)
		if err := parsed.Parse(template); err != nil {
			return nil, fmt.Errorf("%q is no path: %w", path, err)
		}
		c.heads, c.paths = append(c.heads, head), append(c.paths, parsed)
	}
	if noHead {
		c.heads = nil
	}
	return c, nil
}

// Print writes the cells of one row, the first time below the head, with tabs between them. It fails as out does, and
// with a path that asks for an item that a list does not have.
func (c *Columns) Print(out io.Writer, row any) error {
	if c.heads != nil {
		if _, err := fmt.Fprintln(out, strings.Join(c.heads, "\t")); err != nil {
			return err
		}
		c.heads = nil
	}
	cells := make([]string, len(c.paths))
	for i, path := range c.paths {
		results, err := path.FindResults(row)
		if err != nil {
			return err
		}
		var found []string
		for _, result := range results {
			for _, v := range result {
				found = append(found, printers.EscapeTerminal(fmt.Sprint(v.Interface())))
			}
		}
		if len(results) == 0 || len(results[0]) == 0 {
			found = append([]string{"<none>"}, found...)
		}
		cells[i] = strings.Join(found, ",")
	}
	_, err := fmt.Fprintln(out, strings.Join(cells, "\t"))
	return err
}
