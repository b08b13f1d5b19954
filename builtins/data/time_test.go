package data

import (
	"testing"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// parse_time reads what str makes of a time.
func TestTimesAsTexts(t *testing.T) {
	parse := func(text string) (starlark.Value, error) {
		return starlark.Call(&starlark.Thread{}, member("time.parse_time"), starlark.Tuple{starlark.String(text)}, nil)
	}
	for _, text := range []string{"2026-01-01 00:00:02 +0000 UTC", "2026-01-01 00:00:02.25 +0100 CET", "2026-01-01T00:00:02Z", "2026-01-01T00:00:02+02:00",
		"2026-01-01 00:00:02.123456789 -0930 -0930", "2026-01-01 00:00:02 -0300 -03", "2026-01-01 00:00:02 +0545 +0545"} {
		v, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if again, err := parse(v.String()); err != nil || !time.Time(again.(startime.Time)).Equal(time.Time(v.(startime.Time))) {
			t.Errorf("%s: %v, %v", text, again, err)
		}
	}
}
