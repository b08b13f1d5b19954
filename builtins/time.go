package builtins

import (
	"errors"
	"fmt"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"
)

// Times and durations, with the values of go.starlark.net's time library.

func timeSpecs() []Spec {
	const phases = PhaseAny
	location := optional("location", TypeString, `"UTC"`)
	member := func(name string) starlark.Value { return startime.Module.Members[name] }
	unit := func(name string) Spec {
		return Spec{Name: "time." + name, Phases: phases, value: member(name)}
	}
	part := func(name string) Param { return keyword(name, TypeInt, "0") }
	return []Spec{
		{Name: "time.now", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callNow},
		{Name: "time.parse_time", Phases: phases, call: callParseTime,
			Params: []Param{required("x", TypeString),
				optional("format", TypeString, `"2006-01-02T15:04:05Z07:00"`), location}},
		{Name: "time.parse_duration", Phases: phases, call: callParseDuration,
			Params: []Param{required("d", TypeAny)}},
		{Name: "time.from_timestamp", Phases: phases, call: callFromTimestamp,
			Params: []Param{required("sec", TypeAny), optional("nsec", TypeAny, "0")}},
		{Name: "time.is_valid_timezone", Phases: phases, call: callIsZone,
			Params: []Param{required("loc", TypeString)}},
		{Name: "time.time", Phases: phases, call: callTime, Params: []Param{
			part("year"), part("month"), part("day"), part("hour"), part("minute"), part("second"),
			part("nanosecond"), keyword("location", TypeString, `"UTC"`),
		}},
		unit("nanosecond"),
		unit("microsecond"),
		unit("millisecond"),
		unit("second"),
		unit("minute"),
		unit("hour"),
	}
}

func callNow(c *call) (starlark.Value, error) { return startime.Time(c.run.Now), nil }

// maxTime bounds the text of a time, of its form and of a duration: errors quote them.
const maxTime = 1 << 10

func callParseTime(c *call) (starlark.Value, error) {
	for _, name := range []string{"x", "format"} {
		if len(c.str(name)) > maxTime {
			return nil, fmt.Errorf("%s: longer than 1 KiB", name)
		}
	}
	loc, err := zone(c.strOr("location", "UTC"))
	if err != nil {
		return nil, err
	}
	t, err := time.ParseInLocation(c.strOr("format", time.RFC3339), c.str("x"), loc)
	for _, name := range []string{"MST", "-0700"} { // what str makes of a time; not every zone has a name
		if said, other := time.Parse("2006-01-02 15:04:05.999999999 -0700 "+name, c.str("x")); c.arg("format") == nil && other == nil {
			t, err = said, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no such time: %w", clip(c.str("x")), err)
	}
	return startime.Time(t), nil
}

func callParseDuration(c *call) (starlark.Value, error) {
	if text, ok := c.arg("d").(starlark.String); ok && len(text) > maxTime {
		return nil, errors.New("d: longer than 1 KiB")
	}
	return c.library(startime.Module.Members["parse_duration"], c.arg("d"))
}

func callFromTimestamp(c *call) (starlark.Value, error) {
	v, err := c.library(startime.Module.Members["from_timestamp"], c.arg("sec"), c.argOr("nsec", starlark.MakeInt(0)))
	if err != nil {
		return nil, err
	}
	return startime.Time(time.Time(v.(startime.Time)).UTC()), nil
}

func callIsZone(c *call) (starlark.Value, error) {
	_, err := zone(c.str("loc"))
	return starlark.Bool(err == nil), nil
}

func callTime(c *call) (starlark.Value, error) {
	loc, err := zone(c.strOr("location", "UTC"))
	if err != nil {
		return nil, err
	}
	return startime.Time(time.Date(c.intOr("year", 0), time.Month(c.intOr("month", 0)), c.intOr("day", 0),
		c.intOr("hour", 0), c.intOr("minute", 0), c.intOr("second", 0), c.intOr("nanosecond", 0), loc)), nil
}

// zone finds a time zone by name. "Local" would differ from host to host.
func zone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("location: %q is no known time zone", clip(name))
	}
	return loc, nil
}
