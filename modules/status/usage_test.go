package status

import (
	"strings"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	var u Usage
	u.Add(2*time.Second, 30)
	before := u
	u.Add(time.Second, 50)
	if want := (Usage{Runs: 2, Time: Duration(3 * time.Second), Longest: Duration(2 * time.Second), Steps: 80, MostSteps: 50}); u != want {
		t.Errorf("got %+v, want %+v", u, want)
	}
	if got, want := u.Since(before), (Usage{Runs: 1, Time: Duration(time.Second), Longest: Duration(2 * time.Second), Steps: 50, MostSteps: 50}); got != want {
		t.Errorf("since then %+v, want %+v", got, want)
	}
	if got := before.Since(u); got != before {
		t.Errorf("of a process that has started anew: %+v", got)
	}
}

func TestPrintUsage(t *testing.T) {
	hooks := []HookUsage{
		{"web", "web/a", Usage{Runs: 1, Time: Duration(time.Millisecond), Steps: 900, Memory: 20 << 20}},
		{"shop", "shop/b", Usage{Runs: 40, Time: Duration(2 * time.Second), Longest: Duration(time.Second), Steps: 100}},
		{"global", "global/c", Usage{Memory: 20 << 10}},
	}
	for by, first := range map[string]string{"time": "shop", "steps": "web", "runs": "shop", "memory": "web"} {
		SortUsage(hooks, by)
		if hooks[0].Module != first {
			t.Errorf("by %s %s is first", by, hooks[0].Module)
		}
	}
	SortUsage(hooks, "time")
	var out strings.Builder
	if err := PrintUsage(&out, hooks, Options{}); err != nil {
		t.Fatal(err)
	}
	const want = `MODULE   HOOK       RUNS   TIME   LONGEST   STEPS   MEMORY
shop     shop/b     40     2s     1s        100     0
web      web/a      1      1ms    0s        900     20Mi
global   global/c   0      0s     0s        0       20Ki
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
