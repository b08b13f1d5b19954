package effect

import (
	"strings"
	"testing"
)

func TestManager(t *testing.T) {
	if got := Manager("web/hooks/a.star:f"); got != "starling/web/hooks/a.star:f" || ManagerModule(got) != "web" {
		t.Error(got)
	}
	long := Manager("web/" + strings.Repeat("x", 300))
	if len(long) > 128 || long == Manager("web/"+strings.Repeat("x", 301)) || ManagerModule(long) != "web" {
		t.Error(long)
	}
	for _, other := range []string{"kubectl", "starling", "starling/web", ""} {
		if m := ManagerModule(other); m != "" {
			t.Errorf("%s is of module %s", other, m)
		}
	}
}
