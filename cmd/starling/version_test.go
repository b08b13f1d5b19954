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
	for _, c := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"", info("v1.2.3"), "starling v1.2.3 (go"},
		{"v2.0.0", info("", commit), "starling v2.0.0 (commit 0123456789ab; go"},
		{"", info("(devel)", commit, changed), "starling (not a release) (commit 0123456789ab, changed; go"},
		{"", nil, "starling (not a release) (go"},
	} {
		if got := versionLine(c.linked, c.info); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q…", got, c.want)
		}
	}
}
