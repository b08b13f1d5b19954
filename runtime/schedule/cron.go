// Package schedule reads cron texts and tells when they fall due. It keeps no
// clock: callers ask [Cron.Next] with theirs.
package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// Cron is a parsed cron text in a time zone. The zero value never falls due.
type Cron struct {
	text string
	spec cron.Schedule
	zone *time.Location // nil: UTC
}

// searchYears bounds the search for the next time. Leap days are up to eight
// years apart.
const searchYears = 10

// maxText is how long a cron text may be: all minutes one by one, and more.
const maxText = 1000

// Parse reads a cron text: five fields (minute, hour, day of month, month, day of
// week), or six with seconds first, or one of @yearly, @annually, @monthly,
// @weekly, @daily, @midnight, @hourly, or "@every 90s". Where both the day of month
// and the day of week are restricted, either is enough, as in crontab(5).
//
// Time zones in the text (TZ=) and dates that never come ("0 0 30 2 *") are errors.
func Parse(text string) (c Cron, err error) {
	text = strings.TrimSpace(text)
	if len(text) > maxText {
		return Cron{}, fmt.Errorf("cron text is longer than %d characters", maxText)
	}
	switch {
	case text == "":
		return Cron{}, errors.New(`cron text is empty; write five fields, as in "*/5 * * * *"`)
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return Cron{}, fmt.Errorf("cron %q: a time zone in the text is not supported; write timezone = \"Europe/Oslo\"", text)
	case strings.HasPrefix(text, "@every"):
		return parseEvery(text)
	}
	if meant := inWords(text); meant != "" {
		return Cron{}, fmt.Errorf("cron %q: these are no five fields; write %q", text, meant)
	}
	parser := cron.MustNewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month |
		cron.Dow | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(searchYears)
	spec, err := parser.Parse(text)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), ": strconv.")
		return Cron{}, fmt.Errorf("cron %q: %s", text, reason)
	}
	if err := checkStarts(text); err != nil {
		return Cron{}, fmt.Errorf("cron %q: %w", text, err)
	}
	c = Cron{text: text, spec: spec}
	// From a fixed day, so that a text is good or bad for ever; the ten years
	// after it hold two leap days.
	if c.Next(time.Date(2023, time.March, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Cron{}, fmt.Errorf("cron %q: there is no such date", text)
	}
	return c, nil
}

// periods are the units that people give periods in, by how they begin.
var periods = regexp.MustCompile(`^(?:every\s+)?(\d+)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)$`)

// inWords is how a text is written that names a period in other words than those of cron; "" for any other.
func inWords(text string) string {
	low := strings.ToLower(text)
	switch word := strings.TrimPrefix(low, "every "); word {
	case "hourly", "daily", "weekly", "monthly", "yearly", "annually", "midnight":
		return "@" + word
	case "nightly", "day", "night":
		return "@daily"
	case "hour", "week", "month", "year":
		return "@" + word + "ly"
	case "minute":
		return "* * * * *"
	}
	if m := periods.FindStringSubmatch(low); m != nil {
		n, err := strconv.Atoi(m[1])
		unit := m[2][:1]
		if hours := map[string]int{"d": 24, "w": 7 * 24}[unit]; hours > 0 && err == nil && n < 1000 {
			return fmt.Sprintf("@every %dh", n*hours)
		}
		return "@every " + m[1] + unit
	}
	if _, err := time.ParseDuration(low); err == nil && low != "0" {
		return "@every " + low
	}
	return ""
}

// maxEvery is the longest period of @every.
const maxEvery = 366 * 24 * time.Hour

// every falls due at each multiple of a period of seconds since 1970: so its ticks are the same
// before and after a restart.
type every int64

// Next is cron.Schedule's.
func (e every) Next(after time.Time) time.Time {
	return time.Unix((after.Unix()/int64(e)+1)*int64(e), 0)
}

func parseEvery(text string) (Cron, error) {
	period, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(text, "@every")))
	if err != nil || period < time.Second || period > maxEvery || period%time.Second != 0 {
		return Cron{}, fmt.Errorf(`cron %q: want whole seconds up to %dh, as in "@every 90s"`, text, maxEvery/time.Hour)
	}
	return Cron{text: text, spec: every(period / time.Second)}, nil
}

// checkStarts refuses ranges that begin past the largest value of their field.
// The parser takes 25-2 of hours, which wraps around midnight, for 1-2.
func checkStarts(text string) error {
	largest := []int{59, 59, 23, 31, 12, 7}
	fields := strings.Fields(text)
	if len(fields) < 5 { // @hourly and the like
		return nil
	}
	largest = largest[len(largest)-len(fields):]
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			start, _, _ := strings.Cut(part, "-")
			if n, err := strconv.Atoi(start); err == nil && n > largest[i] {
				return fmt.Errorf("%d is above %d in %q", n, largest[i], part)
			}
		}
	}
	return nil
}

// In returns c as its fields are read in a time zone: an IANA name such as
// "Europe/Oslo", or "UTC". Where clocks go forward a time that is left out falls due
// as they do; where they go back one that comes twice falls due once, unless c names all
// hours: then it goes on.
func (c Cron) In(zone string) (Cron, error) {
	if zone == "" || zone == "Local" {
		return Cron{}, fmt.Errorf("time zone %q is not a name like Europe/Oslo or UTC", zone)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return Cron{}, fmt.Errorf("time zone %q is not known; write a name like Europe/Oslo or UTC", zone)
	}
	c.zone = loc
	return c, nil
}

// Next returns the first time after the given one at which c falls due, in UTC,
// or the zero time when there is none within ten years.
func (c Cron) Next(after time.Time) time.Time {
	if c.spec == nil {
		return time.Time{}
	}
	zone := c.zone
	if zone == nil {
		zone = time.UTC
	}
	next := c.spec.Next(after.In(zone))
	if over := seenBefore(next); !over.IsZero() && !c.eachHour() {
		next = c.spec.Next(over.Add(-time.Second))
	}
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// eachHour says that c names all hours, or none: it goes on where clocks go back.
func (c Cron) eachHour() bool {
	const allHours = 1<<24 - 1
	fields, is := c.spec.(*cron.SpecSchedule)
	return !is || fields.Hour&allHours == allHours
}

// seenBefore says when the hour ends that comes twice as clocks go back; zero for a time that does not come a
// second time.
func seenBefore(t time.Time) (over time.Time) {
	since, _ := t.ZoneBounds()
	if t.IsZero() || since.IsZero() {
		return time.Time{}
	}
	_, now := t.Zone()
	_, before := since.Add(-time.Second).Zone()
	if over = since.Add(time.Duration(before-now) * time.Second); t.Before(over) {
		return over
	}
	return time.Time{}
}

// Jitter returns a wait in [0, most) for one tick of one schedule: the same for the
// same, so that a restart does not move it, and different for others, so that what
// falls due together does not start together.
func Jitter(id string, tick time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(id + " " + tick.UTC().Format(time.RFC3339)))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(most))
}

// String returns the text that c was read from.
func (c Cron) String() string { return c.text }
