package hook

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestCheckSettings(t *testing.T) {
	g, m := compile(t, nodes, moduleStar+`
def settings_check(old, new):
    if new.get("n") == 4:
        fail("four is too much")
    if new.get("n") == 5:
        return 5
    if new.get("n") == 6:
        return new["none"]
    if old.get("n", 0) > new.get("n", 0):
        return "n may only grow: it is %d" % old["n"]
`)
	section := func(n int64) map[string]any { return map[string]any{"n": n} }
	for _, c := range []struct {
		old, next map[string]any
		want      string
	}{
		{nil, section(1), " <nil>"},
		{section(2), nil, "n may only grow: it is 2 <nil>"},
		{section(2), section(1), "n may only grow: it is 2 <nil>"},
		{section(2), section(4), "four is too much <nil>"},
		{section(2), section(5), " settings_check() returned int; it must return None, or a text that says what is wrong"},
		{section(2), section(6), `key "none"`},
	} {
		against, err := CheckSettings(context.Background(), g.Host, m, c.old, c.next, noLog{})
		if got := fmt.Sprint(against, " ", err); !strings.Contains(got, c.want) {
			t.Errorf("%v to %v: got %q, want %q", c.old, c.next, got, c.want)
		}
	}
}
