package migrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// Fate is what has become of a part of the old tree.
type Fate int

// The fates, in the order of the report.
const (
	// Left is not brought over.
	Left Fate = iota
	// Changed is brought over in another form, or with another meaning: look at it.
	Changed
	// Done is brought over.
	Done
)

// Note says what has become of a part of the old tree.
type Note struct {
	// Path is the file in the old tree.
	Path string
	Fate Fate
	// Text is one line without the path.
	Text string
}

// String is "PATH: TEXT". Both come from files that others wrote.
func (n Note) String() string { return message.Clean(n.Path + ": " + n.Text) }

// notes gathers the notes of one file.
type notes struct {
	path string
	all  []Note
}

func (n *notes) add(fate Fate, format string, args ...any) {
	n.all = append(n.all, Note{n.path, fate, fmt.Sprintf(format, args...)})
}

// ReportFile is the name of the report in the new tree.
const ReportFile = "MIGRATION.md"

// report writes all notes for people, the work that is left first.
func report(all []Note) []byte {
	var b strings.Builder
	b.WriteString("# Migration\n\nWritten by `starling new`. Paths are those of the old tree.\n")
	for _, part := range []struct {
		fate  Fate
		title string
		text  string
	}{
		{Left, "Not brought over", "These need work by hand."},
		{Changed, "Brought over with a difference", "Look at each: it is not exactly as it was."},
		{Done, "Brought over", "These mean the same as before."},
	} {
		var rows []string
		for _, n := range all {
			if n.Fate == part.fate {
				rows = append(rows, "- `"+message.Clean(n.Path)+"`: "+message.Clean(n.Text)+"\n")
			}
		}
		slices.Sort(rows)
		rows = slices.Compact(rows)
		if len(rows) > 0 {
			fmt.Fprintf(&b, "\n## %s (%d)\n\n%s\n\n%s", part.title, len(rows), part.text, strings.Join(rows, ""))
		}
	}
	return []byte(b.String())
}
