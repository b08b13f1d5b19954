package pages

import "testing"

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
