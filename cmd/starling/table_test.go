package main

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/status"
)

func TestModuleTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	soon := now.Add(8 * time.Second)
	modules := []status.Module{
		{Name: "hello", State: status.StateReady, Since: now.Add(-90 * time.Second),
			Release: &status.Release{Name: "hello", Namespace: "hello", Revision: 12}},
		{Name: "ingress-nginx", State: status.StateFailed, Reason: "größer\x1b[2J\nthan one line", Since: now, NextTry: &soon},
	}
	var got strings.Builder
	if err := moduleTable(modules, now).write(&got, false); err != nil {
		t.Fatal(err)
	}
	width := len("STATE")
	width = max(width, len(status.StateReady), len(status.StateFailed))
	pad := func(s string) string { return s + strings.Repeat(" ", width-len(s)) }
	want := "NAME            " + pad("STATE") + "   RELEASE       REVISION   AGE   NEXT TRY   REASON\n" +
		"hello           " + pad(string(status.StateReady)) + "   hello/hello   12         90s   -          -\n" +
		"ingress-nginx   " + pad(string(status.StateFailed)) + "   -             -          0s    in 8s      größer [2J than one line\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}

	got.Reset()
	if err := moduleTable(modules, now).write(&got, true); err != nil {
		t.Fatal(err)
	}
	green := "\x1b[32m" + string(status.StateReady) + "\x1b[0m"
	if !strings.Contains(got.String(), green) {
		t.Errorf("no %q in %q", green, got.String())
	}
}

func TestVersionLine(t *testing.T) {
	set := func(kv ...string) (out []debug.BuildSetting) {
		for i := 0; i < len(kv); i += 2 {
			out = append(out, debug.BuildSetting{Key: kv[i], Value: kv[i+1]})
		}
		return out
	}
	for want, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
	}{
		"starling v1.2.3 (go":                                      {"", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}},
		"starling v2.0.0 (commit 0123456789ab; go":                 {"v2.0.0", &debug.BuildInfo{Settings: set("vcs.revision", "0123456789abcdef", "vcs.modified", "false")}},
		"starling (not a release) (commit 0123456789ab, changed; ": {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: set("vcs.revision", "0123456789abcdef", "vcs.modified", "true")}},
		"starling (not a release) (go":                             {"", nil},
	} {
		if got := versionLine(c.linked, c.info); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q…", got, want)
		}
	}
}
