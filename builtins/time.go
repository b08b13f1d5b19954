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
	location := Param{Name: "location", Type: TypeString, Default: `"UTC"`, Doc: "Name of a time zone."}
	member := func(name string) starlark.Value { return startime.Module.Members[name] }
	unit := func(name string) Spec {
		return Spec{Name: "time." + name, Phases: phases, Doc: "One " + name + ", as a duration.", value: member(name)}
	}
	field := func(name, doc string) Param {
		return Param{Name: name, Type: TypeInt, Default: "0", Keyword: true, Doc: doc}
	}
	return []Spec{
		{Name: "time.now", Phases: PhaseRun | PhaseReview, Effect: EffectRead, Returns: "a time", call: callNow,
			Doc: "The time of the run, the same throughout it."},
		{Name: "time.parse_time", Phases: phases, Returns: "a time", call: callParseTime,
			Doc: "Reads a time.",
			Params: []Param{
				{Name: "x", Type: TypeString, Doc: "The text, such as metadata.creationTimestamp. Without format also what str makes of a time; a text for others to read is t.format(\"2006-01-02T15:04:05Z07:00\")."},
				{Name: "format", Type: TypeString, Default: `"2006-01-02T15:04:05Z07:00"`, Doc: "How it is written, as Go's time package has it."},
				location,
			}},
		{Name: "time.parse_duration", Phases: phases, Returns: "a duration", call: callParseDuration,
			Doc:    "Reads a duration.",
			Params: []Param{{Name: "d", Type: TypeAny, Doc: "Text like \"1h30m\" or \"-5s\", or a duration."}}},
		{Name: "time.from_timestamp", Phases: phases, Returns: "a time, in UTC", call: callFromTimestamp,
			Doc: "Makes a time of seconds since 1970.",
			Params: []Param{
				{Name: "sec", Type: TypeAny, Doc: "Whole seconds."},
				{Name: "nsec", Type: TypeAny, Default: "0", Doc: "Nanoseconds on top."},
			}},
		{Name: "time.is_valid_timezone", Phases: phases, Returns: "True or False", call: callIsZone,
			Doc:    "Reports whether a time zone is known.",
			Params: []Param{{Name: "loc", Type: TypeString, Doc: "Its name, such as \"Europe/Oslo\"."}}},
		{Name: "time.time", Phases: phases, Returns: "a time", call: callTime,
			Doc: "Makes a time of its parts.",
			Params: []Param{
				field("year", "The year."), field("month", "1 to 12."), field("day", "1 to 31."),
				field("hour", "0 to 23."), field("minute", "0 to 59."), field("second", "0 to 59."),
				field("nanosecond", "0 to 999999999."),
				{Name: "location", Type: TypeString, Default: `"UTC"`, Keyword: true, Doc: "Name of a time zone."},
			}},
		unit("nanosecond"), unit("microsecond"), unit("millisecond"), unit("second"), unit("minute"), unit("hour"),
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
