package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Several folders are one tree. A module, or a file, that two of them have is an error there, and stops
// nothing else.
func TestSeveralFolders(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, a+"/web/module.star", "a")
	write(t, a+"/lib/a.star", "x")
	write(t, a+"/lib/both.star", "a")
	write(t, a+"/global/hooks/a.star", "x")
	write(t, a+"/020-twice/module.star", "x")
	write(t, a+"/named/module.star", "x")
	write(t, a+"/values.yaml", "webEnabled: true")
	write(t, b+"/db/module.star", "b")
	write(t, b+"/lib/b.star", "x")
	write(t, b+"/lib/both.star", "b")
	write(t, b+"/global/hooks/b.star", "x")
	write(t, b+"/020-twice/module.star", "x")
	write(t, b+"/010-named/module.star", "x")
	tr, err := ReadDir(a+":"+b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{fmt.Sprint(tr.Values, tr.Global.HookFiles, tr.Global.Err)}
	for _, m := range tr.Modules {
		got = append(got, fmt.Sprintf("%s: %v", m.Name, m.Err))
	}
	for _, p := range tr.Problems {
		got = append(got, p.String())
	}
	both := fmt.Sprintf("it is in %s and in %s: rename or remove all but one", a, b)
	want := []string{
		"map[webEnabled:true] [global/hooks/a.star global/hooks/b.star] <nil>",
		"db: <nil>",
		"named: 010-named: named has the name named too: rename one", "named: named: 010-named has the name named too: rename one",
		"twice: 020-twice: cannot read the folder: " + both,
		"web: <nil>",
		"lib/both.star: cannot read the file: " + both,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	write(t, b+"/values.yaml", "dbEnabled: true")
	if _, err := ReadDir(a+":"+b, Options{}); err == nil || !strings.Contains(err.Error(), "values.yaml: cannot read the file: it is in "+a+" and in "+b+": keep one") {
		t.Error(err)
	}
	if _, err := ReadDir(a+":"+b+"/none", Options{}); err == nil || !strings.Contains(err.Error(), b+"/none: no such file") {
		t.Error(err)
	}
}

// The locks of several folders are one.
func TestLocksOfSeveralFolders(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	lock := func(dir, module string) {
		data, err := FormatLock(map[string]Locked{module: {URL: "https://example.com/" + module, Version: "1.0.0", Digest: "sha256:" + strings.Repeat("0", 64)}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/"+LockFile, string(data))
		write(t, dir+"/"+module+"/module.star", "x")
	}
	lock(a, "web")
	lock(b, "db")
	tr, err := ReadDir(a+":"+b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range tr.Modules {
		if m.Locked == nil || !strings.HasSuffix(m.Locked.URL, m.Name) {
			t.Errorf("%s has %v", m.Name, m.Locked)
		}
	}
	lock(b, "web")
	if _, err := ReadDir(a+":"+b, Options{}); err == nil || !strings.Contains(err.Error(), "both name a chart of module web") {
		t.Error(err)
	}
}

func TestLinksThatLeadOut(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside+"/module.star", "x")
	write(t, dir+"/api/module.star", "x")
	link(t, outside, dir+"/out")
	link(t, dir, outside+"/again") // without an end
	tr, err := ReadDir(dir, Options{FollowLinks: true, MaxDepth: 5})
	if err == nil || !strings.Contains(err.Error(), "folders lie more than 5 deep") {
		t.Fatal(tr, err)
	}
	again := t.TempDir()
	link(t, outside+"/module.star", again+"/module.star")
	whole := t.TempDir()
	link(t, again, whole+"/out")
	if tr, err = ReadDir(whole, Options{FollowLinks: true}); err != nil || len(tr.Modules) != 1 || tr.Modules[0].Err != nil {
		t.Errorf("%v, %v", tr, err)
	}
}
