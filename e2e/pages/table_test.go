package pages

import (
	"slices"
	"testing"
)

// A row of the table that no command needs says of some other one what is not true.
func TestEachRowIsNeeded(t *testing.T) {
	commands, err := Commands("../..")
	if err != nil {
		t.Fatal(err)
	}
	all := table
	defer func() { table = all }()
	for i, row := range all {
		table = append(append(table[:0:0], all[:i]...), all[i+1:]...)
		needed := false
		for _, c := range commands {
			needed = needed || runBy(c.Page, c.Text) != c.RunBy
		}
		if !needed {
			t.Errorf("%+v: each command is run as it is without it", row)
		}
	}
}

func TestSplit(t *testing.T) {
	got := split("a # it's\n\nb 'c\nd' e\n# no command\nf \\\n  \"g#h\" '#'\ni 'that has no end\n")
	want := []string{"a # it's", "b 'c\nd' e", "f \"g#h\" '#'", "i 'that has no end\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
