package verdicts

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
)

// A module goes after those that require it, come after it or weigh more, also when that was read
// from what an earlier process has kept.
func TestExits(t *testing.T) {
	light, heavy := 1, 2
	places := Places{
		"db": {Weight: &light}, "app": {Requires: []string{"x|db", "!gone"}}, "web": {After: []string{"app"}}, "log": {Weight: &heavy}, "other": {},
	}
	kept := ReadPlaces(places.Encode())
	if _, there := kept["other"]; there || len(kept) != 4 {
		t.Errorf("kept %v", kept)
	}
	var decl builtins.ModuleDecl
	kept["app"].Put(&decl)
	if diff := cmp.Diff(places["app"], PlaceOf(&decl)); diff != "" {
		t.Error(diff)
	}
	for going, want := range map[string]string{"app": "app", "web": "web", "log": "log", "other": ""} {
		for _, p := range []Places{places, kept} {
			if got := p.Exits().GoesBefore("db", func(name string) bool { return name == going }); got != want {
				t.Errorf("%q goes before db, want %q", got, want)
			}
		}
	}
}

func TestNoPlaces(t *testing.T) {
	if data := (Places{"other": {}}).Encode(); data != nil {
		t.Errorf("kept %s", data)
	}
	for _, data := range []string{"", "no", "[1]"} {
		if got := ReadPlaces([]byte(data)); got == nil || len(got) > 0 {
			t.Errorf("%q is read as %v", data, got)
		}
	}
}
