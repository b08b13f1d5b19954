package data

import (
	"errors"
	"fmt"
	"time"

	startime "go.starlark.net/lib/time"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Times and durations, with the values of go.starlark.net's time library.

func timeSpecs() []spec.Spec {
	location := spec.Optional("location", spec.String, `"UTC"`)
	member := func(name string) starlark.Value { return startime.Module.Members[name] }
	unit := func(name string) spec.Spec {
		return spec.Spec{Name: "time." + name, Phases: spec.Anywhere, Value: member(name)}
	}
	part := func(name string) spec.Param { return spec.Keyword(name, spec.Int, "0") }
	return []spec.Spec{
		spec.New("time.now", spec.InRun|spec.InReview, spec.Reads, callNow),
		spec.Pure("time.parse_time", callParseTime, spec.Required("x", spec.String),
			spec.Optional("format", spec.String, `"2006-01-02T15:04:05Z07:00"`), location),
		spec.Pure("time.parse_duration", callParseDuration, spec.Required("d", spec.Any)),
		spec.Pure("time.from_timestamp", callFromTimestamp, spec.Required("sec", spec.Any),
			spec.Optional("nsec", spec.Any, "0")),
		spec.Pure("time.is_valid_timezone", callIsZone, spec.Required("loc", spec.String)),
		spec.Pure("time.time", callTime, part("year"), part("month"), part("day"), part("hour"),
			part("minute"), part("second"), part("nanosecond"), spec.Keyword("location", spec.String, `"UTC"`)),
		unit("nanosecond"), unit("microsecond"), unit("millisecond"), unit("second"), unit("minute"), unit("hour"),
	}
}

func callNow(c *spec.Call) (starlark.Value, error) { return startime.Time(c.Now), nil }

// maxTime bounds the text of a time, of its form and of a duration: errors quote them.
const maxTime = 1 << 10

func callParseTime(c *spec.Call) (starlark.Value, error) {
	for _, name := range []string{"x", "format"} {
		if len(c.Str(name)) > maxTime {
			return nil, fmt.Errorf("%s: longer than 1 KiB", name)
		}
	}
	loc, err := zone(c.StrOr("location", "UTC"))
	if err != nil {
		return nil, err
	}
	t, err := time.ParseInLocation(c.StrOr("format", time.RFC3339), c.Str("x"), loc)
	for _, name := range []string{"MST", "-0700"} { // what str makes of a time; not every zone has a name
		if said, other := time.Parse("2006-01-02 15:04:05.999999999 -0700 "+name, c.Str("x")); c.Arg("format") == nil && other == nil {
			t, err = said, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no such time: %w", spec.Clip(c.Str("x")), err)
	}
	return startime.Time(t), nil
}

func callParseDuration(c *spec.Call) (starlark.Value, error) {
	if text, ok := c.Arg("d").(starlark.String); ok && len(text) > maxTime {
		return nil, errors.New("d: longer than 1 KiB")
	}
	return library(c.Thread, startime.Module.Members["parse_duration"], c.Arg("d"))
}

func callFromTimestamp(c *spec.Call) (starlark.Value, error) {
	from := startime.Module.Members["from_timestamp"]
	v, err := library(c.Thread, from, c.Arg("sec"), c.ArgOr("nsec", starlark.MakeInt(0)))
	if err != nil {
		return nil, err
	}
	return startime.Time(time.Time(v.(startime.Time)).UTC()), nil
}

func callIsZone(c *spec.Call) (starlark.Value, error) {
	_, err := zone(c.Str("loc"))
	return starlark.Bool(err == nil), nil
}

func callTime(c *spec.Call) (starlark.Value, error) {
	loc, err := zone(c.StrOr("location", "UTC"))
	if err != nil {
		return nil, err
	}
	return startime.Time(time.Date(c.IntOr("year", 0), time.Month(c.IntOr("month", 0)), c.IntOr("day", 0),
		c.IntOr("hour", 0), c.IntOr("minute", 0), c.IntOr("second", 0), c.IntOr("nanosecond", 0), loc)), nil
}

// zone finds a time zone by name. "Local" would differ from host to host.
func zone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("location: %q is no known time zone", spec.Clip(name))
	}
	return loc, nil
}
