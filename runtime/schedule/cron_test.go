package schedule

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tc := range []struct{ cron, after, want string }{
		{"0 * * * *", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"},
		{"*/5 * * * *", "2026-03-01T10:03:59Z", "2026-03-01T10:05:00Z"},
		{"30 0 10 * * *", "2026-03-01T10:00:00Z", "2026-03-01T10:00:30Z"},
		{"@hourly", "2026-03-01T10:59:59Z", "2026-03-01T11:00:00Z"},
		{"@daily", "2026-03-01T10:59:59+05:00", "2026-03-02T00:00:00Z"},
		{"0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 13 * FRI", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"}, // either is enough
		{"0 22-2 * * *", "2026-03-01T02:30:00Z", "2026-03-01T22:00:00Z"}, // around midnight
		{"0 3 * * 0", "2026-03-02T00:00:00Z", "2026-03-08T03:00:00Z"},
		{"0 3 * * 7", "2026-03-02T00:00:00Z", "2026-03-08T03:00:00Z"},
		{"@every 5m", "2026-03-01T10:03:59.5Z", "2026-03-01T10:05:00Z"},
		{"@every 5m", "2026-03-01T10:05:00Z", "2026-03-01T10:10:00Z"},
		{"@every 90s", "2026-03-01T10:00:00Z", "2026-03-01T10:01:30Z"},
		{"@every 1h30m", "2026-03-01T10:00:00Z", "2026-03-01T10:30:00Z"},
	} {
		c, err := Parse(tc.cron)
		if err != nil {
			t.Errorf("%s: %v", tc.cron, err)
			continue
		}
		if got := c.Next(at(tc.after)); !got.Equal(at(tc.want)) || got.Location() != time.UTC {
			t.Errorf("%s: next after %s is %s, want %s", tc.cron, tc.after, got, tc.want)
		}
	}
	if !(Cron{}).Next(at("2026-03-01T10:00:00Z")).IsZero() {
		t.Error("the zero Cron falls due")
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "is empty",
		"* * * *":                   "fields",
		"61 * * * *":                "61",
		"TZ=Europe/Oslo 0 0 * * *":  "timezone =",
		"CRON_TZ=UTC 0 0 * * *":     "timezone =",
		"@every":                    "whole seconds",
		"@every soon":               "whole seconds",
		"@every -5s":                "whole seconds",
		"@every 0s":                 "whole seconds",
		"@every 1500ms":             "whole seconds",
		"@every 9000h":              "whole seconds up to 8784h",
		"@sometimes":                "@sometimes",
		"0 0 30 2 *":                "no such date",
		"0 0 31 4,6,9 *":            "no such date",
		"H * * * *":                 "hash",
		"0 25-2 * * *":              "25 is above 23",
		"70-5 0 0 * * *":            "70 is above 59",
		"0 0 * * L":                 `failed to parse int from "L"`,
		strings.Repeat("1,", 1<<12): "longer than",
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want it to say %q", text, err, want)
		}
	}
}

// A text that names a period in other words is told how it is written, and that is right.
func TestPeriodsInWords(t *testing.T) {
	for text, want := range map[string]string{
		"daily": "@daily", "Daily": "@daily", "every day": "@daily", "nightly": "@daily", "hour": "@hourly", "24h": "@every 24h",
		"every 5 minutes": "@every 5m", "1 day": "@every 24h", "2w": "@every 336h", "90 secs": "@every 90s", "1h30m": "@every 1h30m",
		"every minute": "* * * * *",
	} {
		_, err := Parse(text)
		if err == nil || !strings.HasSuffix(err.Error(), "; write "+strconv.Quote(want)) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
		if _, err := Parse(want); err != nil {
			t.Error(err)
		}
	}
	if _, err := Parse("* * * *"); err == nil || !strings.Contains(err.Error(), "found 4") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("*/5 1-3 1,15 * MON-FRI")
	f.Add("@weekly")
	f.Add("0 0 0 29 2 ?")
	f.Add("@every 90s")
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		if next := c.Next(base); !next.IsZero() && !next.After(base) {
			t.Errorf("%q: next after %s is %s", text, base, next)
		}
	})
}
func TestTimeZones(t *testing.T) {
	c, err := Parse("30 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	oslo, err := c.In("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tc := range []struct{ after, want string }{
		{"2026-01-10T12:00:00Z", "2026-01-11T01:30:00Z"}, // winter
		{"2026-07-10T12:00:00Z", "2026-07-11T00:30:00Z"}, // summer
		{"2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // 02:30 comes twice: the first
		{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}, // and not the second
		{"2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z"}, // nor for one that starts between them
	} {
		if got := oslo.Next(at(tc.after)); !got.Equal(at(tc.want)) {
			t.Errorf("after %s: %s, want %s", tc.after, got, tc.want)
		}
	}
	// 02:30 of 29 March is left out: it must not be lost with its day, nor stop
	// the days after it.
	next := oslo.Next(at("2026-03-28T12:00:00Z"))
	if next.Before(at("2026-03-29T00:30:00Z")) || next.After(at("2026-03-30T00:30:00Z")) {
		t.Errorf("around the change to summer time: %s", next)
	}
	for text, want := range map[string][]string{
		"*/30 * * * *":    {"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"}, // goes on
		"@every 30m":      {"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"},
		"0,30 2,3 * * *":  {"2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z", "2026-10-25T02:30:00Z"},
		"59 59 2 25 10 *": {"2026-10-25T00:59:59Z", "2027-10-25T00:59:59Z"},
	} {
		c, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, _ = c.In("Europe/Oslo")
		for last, i := at("2026-10-25T00:00:00Z"), 0; i < len(want); i++ {
			if last = c.Next(last); !last.Equal(at(want[i])) {
				t.Errorf("%s: %s, want %s", text, last, want[i])
			}
		}
	}
	for _, zone := range []string{"", "Local", "Mars/Olympus", "../../etc/passwd"} {
		if _, err := c.In(zone); err == nil {
			t.Errorf("zone %q was taken", zone)
		}
	}
}

func TestJitter(t *testing.T) {
	tick := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := Jitter("a", tick, time.Minute)
	if a < 0 || a >= time.Minute || a != Jitter("a", tick, time.Minute) || a == Jitter("b", tick, time.Minute) {
		t.Errorf("jitter %s", a)
	}
	if Jitter("a", tick, 0) != 0 {
		t.Error("jitter without a range")
	}
}
