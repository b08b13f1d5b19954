package userconfig

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/values"
)

func newConfig() *Config {
	return New(Options{
		Where:    func(string, string) string { return "ConfigMap ns/starling" },
		Evaluate: func(_ string, _ func() []string, evaluate func() error) error { return evaluate() },
	})
}

// sections are those of the global values and of the module web; "bad: true" does not pass.
func sections() []Section {
	check := func(next, _ map[string]any) []values.Problem {
		if next["bad"] == true {
			return []values.Problem{{Key: "k", Message: "must not be bad"}}
		}
		return nil
	}
	return []Section{{Name: "global", Key: "global", Global: true, Check: check}, {Name: "web", Key: "web", Check: check}}
}

func (c *Config) take(state State, data ...string) Outcome {
	in := Input{State: state, Data: map[string]string{}}
	for _, line := range data {
		key, text, _ := strings.Cut(line, "=")
		in.Data[key] = text
	}
	c.See(in)
	return c.count(sections())
}

// count keeps at once all that is said.
func (c *Config) count(all []Section) Outcome {
	c.Apply(all)
	return c.Count()
}

func TestWhatDoesNotPassStaysAsItWas(t *testing.T) {
	c := newConfig()
	if out := c.take(Present, "web=x: 1", "global=x: 1", "webEnabled=true"); fmt.Sprint(out.Moved) != "[global web]" || !out.All || len(out.Problems) > 0 {
		t.Fatalf("outcome %+v", out)
	}
	out := c.take(Present, "web=bad: true", "global=x: 2", "webEnabled=maybe")
	if fmt.Sprint(out.Moved) != "[global]" || out.All || len(out.Problems) != 2 {
		t.Errorf("outcome %+v", out)
	}
	want := values.Config{
		Global: map[string]any{"x": int64(2)}, Sections: map[string]map[string]any{"web": {"x": int64(1)}}, Enabled: map[string]bool{"web": true},
	}
	if diff := cmp.Diff(want, c.Accepted()); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	if again := c.take(Present, "web=bad: true", "global=x: 2", "webEnabled=maybe"); len(again.Moved) > 0 || len(again.Problems) > 0 {
		t.Errorf("the same again: %+v", again)
	}
	if len(c.Problems()["web"]) != 2 {
		t.Errorf("problems %v", c.Problems())
	}
}

// Keys about the release of a module stay as they were, too.
func TestPoliciesStayAndMove(t *testing.T) {
	c := newConfig()
	for _, tt := range []struct {
		data, moved string
		want        values.Policy
	}{
		{"webDrift=report", "[web]", values.Policy{Drift: "report"}},
		{"webDrift=mend", "[]", values.Policy{Drift: "report"}},
		{"webPaused=true", "[web]", values.Policy{Paused: true}},
		{"webPaused=", "[]", values.Policy{Paused: true}},
		{"web=x: 1", "[web]", values.Policy{}},
	} {
		if out := c.take(Present, tt.data); fmt.Sprint(out.Moved) != tt.moved || c.Accepted().Policies["web"] != tt.want {
			t.Errorf("%s: moved %v, in force %+v", tt.data, out.Moved, c.Accepted())
		}
	}
	c.take(Present, "webPaused=true")
	if !c.Drop("web") || c.Held() {
		t.Errorf("dropped, in force %+v", c.Accepted())
	}
}

func TestAConfigThatIsGoneStaysInForce(t *testing.T) {
	c := newConfig()
	if c.Known() || len(c.count(sections()).Moved) > 0 {
		t.Error("something counts before anything is known")
	}
	c.take(Present, "web=x: 1")
	for _, state := range []State{Missing, Unreadable} {
		if out := c.take(state); len(out.Moved) > 0 || !out.Lost || !out.All || !c.Held() || c.seen.State != state {
			t.Errorf("%s: %+v", state, out)
		}
		if out := c.take(state); out.Lost {
			t.Errorf("%s is told twice", state)
		}
	}
	if out := c.take(Present); fmt.Sprint(out.Moved) != "[web]" || !out.All || c.Held() {
		t.Errorf("an empty one: %+v", out)
	}
}

func TestWhatIsKeptComesBack(t *testing.T) {
	c, next := newConfig(), newConfig()
	c.take(Present, "web=x: 9007199254740993", "global=list: [1, a]", "webEnabled=false", "webDrift=report", "webPaused=true")
	kept := c.Keep()
	for key := range kept {
		if !IsKey(key) {
			t.Errorf("%s is no key of the config", key)
		}
	}
	if broken := next.Adopt(kept); len(broken) > 0 {
		t.Errorf("cannot be read: %v", broken)
	}
	if diff := cmp.Diff(c.Accepted(), next.Accepted()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	kept[sectionKey+"web"] = []byte("{")
	next = newConfig()
	if broken := next.Adopt(kept); fmt.Sprint(broken) != "[config.section.web]" || next.Accepted().Global == nil {
		t.Errorf("cannot be read: %v; in force %v", broken, next.Accepted())
	}
}

// A module moves with its section, and with its switch alone.
func TestOnlyTheModulesThatDifferMove(t *testing.T) {
	c := newConfig()
	for i, tt := range []struct{ data, want string }{
		{"web=x: 1", "[web]"},
		{"web=x: 1", "[]"},
		{"web=x: 1;webEnabled=false", "[web]"},
		{"web=x: 1;webEnabled=true;global=x: 1", "[global web]"},
		{"web=x:  1;webEnabled=true;global=x: 2", "[global]"},
		{"web=x: 1;global=x: 2", "[web]"},
		{"", "[global web]"},
	} {
		var data []string
		if tt.data != "" {
			data = strings.Split(tt.data, ";")
		}
		if got := fmt.Sprint(c.take(Present, data...).Moved); got != tt.want {
			t.Errorf("%d: %s moves, want %s", i, got, tt.want)
		}
	}
	c.Adopt(map[string][]byte{sectionKey + "gone": []byte("{}")})
	if got := fmt.Sprint(c.take(Present).Moved); got != "[gone]" {
		t.Errorf("%s moves, want what belongs to no module", got)
	}
}

// A section that says the same as before is not read again, unless it did not pass, or modules are others.
func TestOnlyWhatDiffersIsRead(t *testing.T) {
	c := newConfig()
	read := ""
	c.o.Evaluate = func(what string, _ func() []string, evaluate func() error) error {
		if key := strings.Fields(what)[1]; !strings.HasSuffix(read, key+" ") { // parsed, then checked
			read += key + " "
		}
		return evaluate()
	}
	for i, tt := range []struct{ data, want string }{
		{"web=x: 1;global=x: 1", "global web global web "},
		{"web=x: 1;global=x: 2", "global "},
		{"web=x: 1;global=x: 2;webEnabled=true", ""},
		{"web=bad: true;global=x: 2", "web "},
		{"web=bad: true;global=x: 3", "global web global web "},
		{"web=x: 1;global=x: 3", "web "},
		{"global=x: 3", ""}, // the section is gone
		{"web=x: 1;global=x: 3", "web "},
	} {
		read = ""
		c.take(Present, strings.Split(tt.data, ";")...)
		if read != tt.want {
			t.Errorf("%d: read %q, want %q", i, read, tt.want)
		}
	}
	c.Anew()
	if read = ""; len(c.count(sections()).Moved) > 0 || read == "" {
		t.Errorf("with other modules: read %q", read)
	}
	if read = ""; c.take(Missing).All && c.take(Present, "web=x: 1", "global=x: 3").All && read == "" {
		t.Error("after it was gone nothing is read")
	}
}

// In whatever order ConfigMaps come, what is in force is what a reader of all of them has.
func TestWhatIsNotReadAgainIsInForce(t *testing.T) {
	texts := []string{"", "x: 1", "x: 2", "bad: true", "- a list"}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		c, all := newConfig(), newConfig()
		for range 20 {
			var data []string
			for _, key := range []string{"global", "web", "webEnabled"} {
				if r.IntN(3) > 0 {
					data = append(data, key+"="+texts[r.IntN(len(texts))])
				}
			}
			state := Present
			if r.IntN(8) == 0 {
				state, data = Missing, nil
			}
			all.Anew()
			c.take(state, data...)
			all.take(state, data...)
			if diff := cmp.Diff(all.Accepted(), c.Accepted()) + cmp.Diff(all.Problems(), c.Problems()); diff != "" {
				t.Fatalf("seed %d, %q (-all is read +got):\n%s", seed, data, diff)
			}
		}
	}
}

// A module that is not in the tree keeps its section, whatever the ConfigMap says, until it
// is gone for good. A pause counts, unless another module has its key by now.
func TestTheSectionOfAModuleThatIsGoneStays(t *testing.T) {
	c := newConfig()
	c.take(Present, "web=x: 1", "webEnabled=true")
	gone := append(sections()[:1], Section{Name: "web", Key: "web", Gone: true})
	c.See(Input{State: Present, Data: map[string]string{"web": "bad: true"}})
	c.count(gone)
	a := c.Accepted()
	if a.Sections["web"]["x"] != int64(1) || !a.Enabled["web"] {
		t.Errorf("in force is %+v", a)
	}
	for _, paused := range []bool{true, false} { // of its object that alone counts
		c.See(Input{State: Present, ObjectsState: Present, Objects: map[string]Object{"web": {Values: `{"x":2}`, Paused: paused}}})
		c.count(gone)
		if c.Paused("web") != paused || c.Accepted().Sections["web"]["x"] != int64(1) {
			t.Errorf("paused is %t, and in force %+v", c.Paused("web"), c.Accepted())
		}
	}
	for _, text := range []string{"true", "false", "true", ""} {
		data := map[string]string{"webPaused": text}
		if text == "" {
			data = nil
		}
		c.See(Input{State: Present, Data: data})
		c.count(gone)
		if c.Paused("web") != (text == "true") || c.Accepted().Sections["web"]["x"] != int64(1) || len(c.Problems()) > 0 {
			t.Errorf("with webPaused %q, paused is %t, in force %+v, wrong %v", text, c.Paused("web"), c.Accepted(), c.Problems())
		}
	}
	c.See(Input{State: Present, Data: map[string]string{"webPaused": "true"}})
	c.count(append(gone, Section{Key: "web", Elsewhere: true}))
	if c.Paused("web") {
		t.Error("it is paused by the key of a module that another instance has")
	}
	if !c.Drop("web") || c.Drop("web") || len(c.Accepted().Sections)+len(c.Accepted().Enabled) > 0 || !a.Enabled["web"] {
		t.Errorf("in force is %+v", c.Accepted())
	}
}

// A config that passes counts once it is kept. Until then the next one is compared with it, and a section that does
// not pass stays as it was in it.
func TestADraftCountsOnceItIsKept(t *testing.T) {
	c := newConfig()
	say := func(data map[string]string) (keeps bool) {
		c.See(Input{State: Present, Data: data})
		keeps, _ = c.Apply(sections())
		return keeps
	}
	if !say(map[string]string{"web": "x: 1"}) || c.Known() || c.seen.State != "" || len(c.Accepted().Sections) > 0 {
		t.Errorf("it counts before it is kept: %+v", c.Accepted())
	}
	if !c.Moves("web") || c.Moves("shop") || string(c.Keep()[sectionKey+"web"]) != `{"x":1}` {
		t.Errorf("moves %t, %t; keeps %s", c.Moves("web"), c.Moves("shop"), c.Keep())
	}
	if say(map[string]string{"web": "bad: true"}) || string(c.Keep()[sectionKey+"web"]) != `{"x":1}` {
		t.Errorf("it keeps %s", c.Keep())
	}
	if out := c.Count(); fmt.Sprint(out.Moved) != "[web]" || len(out.Problems) != 1 || !c.Known() || c.force() != "1" || c.Moves("web") {
		t.Errorf("%+v, in force %s", out, c.force())
	}
	if out := c.Count(); len(out.Moved) > 0 || out.All || out.Lost {
		t.Errorf("once more: %+v", out)
	}
	say(map[string]string{"global": "x: 1"})
	if !c.Moves("shop") || c.Accepted().Global != nil {
		t.Errorf("global values: %+v", c.Accepted())
	}
}

// The config of an earlier process is there for a draft that was made before it was read.
func TestADraftHasWhatWasKept(t *testing.T) {
	c := newConfig()
	c.See(Input{State: Present, Data: map[string]string{"web": "bad: true"}})
	c.Adopt(map[string][]byte{sectionKey + "web": []byte(`{"x":1}`)})
	if out := c.count(sections()); len(out.Moved) > 0 || c.force() != "1" {
		t.Errorf("%+v, in force %s", out, c.force())
	}
}
