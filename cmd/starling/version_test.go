package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionLine(t *testing.T) {
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	date := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-29T13:17:00Z"}
	for _, c := range []struct {
		version, commit, date string
		info                  *debug.BuildInfo
		want                  string
	}{
		{"", "", "", info("v1.2.3"), "starling v1.2.3 (go"},
		{"v2.0.0", "", "", info("", commit), "starling v2.0.0 (commit 0123456789ab; go"},
		{"", "", "", info("(devel)", commit, changed, date), "starling (not a release) (commit 0123456789ab, changed, of 2026-11-29; go"},
		{"v2.0.0", "fedcba987654", "2026-11-28T09:00:00+01:00", info("", commit), "starling v2.0.0 (commit fedcba987654, of 2026-11-28; go"},
		{"", "fedcba987654+changed", "", nil, "starling (not a release) (commit fedcba987654, changed; go"},
		{"", "", "", nil, "starling (not a release) (go"},
	} {
		if got := versionLine(c.version, c.commit, c.date, c.info); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q…", got, c.want)
		}
	}
}
