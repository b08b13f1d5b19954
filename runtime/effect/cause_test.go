package effect

import (
	"fmt"
	"testing"
)

// A row of runs that goes round is found after a few rounds, wherever it has begun; one that
// does not is not.
func TestARowOfRunsThatGoesRoundIsFound(t *testing.T) {
	for _, c := range []struct{ before, ring int }{{0, 1}, {0, 2}, {3, 1}, {0, 3}, {7, 5}, {100, 40}} {
		var cause *Cause
		rounds := 0
		for i := range c.before + 30*c.ring {
			run := fmt.Sprint("before ", i)
			if i >= c.before {
				run = fmt.Sprint((i - c.before) % c.ring)
			}
			cause = cause.Then(run, true, "")
			rounds = max(rounds, cause.Round(run))
		}
		if rounds < 20 {
			t.Errorf("of 30 rounds of %d runs after %d others %d are known", c.ring, c.before, rounds)
		}
	}
	var cause *Cause
	for i := range 1000 {
		if cause = cause.Then(fmt.Sprint(i), true, ""); cause.Rounds > 1 {
			t.Fatalf("run %d of a row without end has come back", i)
		}
	}
}

// Runs of one stage that lead to each other are counted, until another run comes in between.
func TestRunsOfAStageInARow(t *testing.T) {
	var cause *Cause
	for i, c := range []struct {
		stage     string
		want, row int
	}{{"after_helm", 1, 1}, {"after_helm", 2, 2}, {"", 0, 0}, {"after_helm", 1, 1}, {"before_helm", 0, 2}, {"after_helm", 1, 3}} {
		if cause = cause.Then("a", false, c.stage); cause.InARow("after_helm") != c.want {
			t.Errorf("run %d: %d in a row, want %d", i, cause.InARow("after_helm"), c.want)
		}
		if cause.Row() != c.row {
			t.Errorf("run %d: %d of stages in a row, want %d", i, cause.Row(), c.row)
		}
	}
}
