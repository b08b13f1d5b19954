package userconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/values"
)

// with takes in a ConfigMap and the object of web; nil: it is not there.
func (c *Config) with(state State, data map[string]string, objects State, web *Object) Outcome {
	in := Input{State: state, Data: data, ObjectsState: objects}
	if objects == Present {
		in.Objects = map[string]Object{"shop": {}}
		if web != nil {
			in.Objects["web"] = *web
		}
	}
	c.See(in)
	return c.count(sections())
}

func (c *Config) force() string {
	a := c.accepted
	out := fmt.Sprint(a.Sections["web"]["x"])
	if on := a.Switch("web"); on != nil {
		out += fmt.Sprint(" ", *on)
	}
	if c.Paused("web") {
		out += " paused"
	}
	if drift := a.Policies["web"].Drift; drift != "" {
		out += " " + drift
	}
	return out
}

func (c *Config) unusedOf(module string) []values.ConfigProblem {
	return slices.DeleteFunc(slices.Clone(c.Problems()[module]), func(p values.ConfigProblem) bool { return p.Outcome != values.Unused })
}

func TestAnObjectCountsInThePlaceOfItsSection(t *testing.T) {
	yes, no := true, false
	data := map[string]string{"web": "{x: 1, y: 1}", "webEnabled": "false"}
	for name, tt := range map[string]struct {
		state   State
		objects State
		o       *Object
		want    string
		unused  int
	}{
		"no objects":                {Present, "", nil, "1 false", 0},
		"it says nothing":           {Present, Present, &Object{}, "1 false", 0},
		"values":                    {Present, Present, &Object{Values: `{"x":2}`}, "2 false", 1},
		"both":                      {Present, Present, &Object{Values: `{"x":2}`, Enabled: &yes}, "2 true", 2},
		"a pause":                   {Present, Present, &Object{Paused: true}, "1 false paused", 0},
		"drift":                     {Present, Present, &Object{Drift: "ignore"}, "1 false ignore", 0},
		"drift alone":               {Missing, Present, &Object{Drift: "ignore"}, "<nil> ignore", 0},
		"no ConfigMap":              {Missing, Present, &Object{Values: `{"x":2}`, Enabled: &no}, "2 false", 0},
		"objects cannot be read":    {Present, Unreadable, nil, "1 false", 0},
		"an object that is refused": {Present, Present, &Object{Values: `{"bad":true}`}, "<nil> false", 1},
	} {
		c := newConfig()
		in := data
		if tt.state != Present {
			in = nil
		}
		c.with(tt.state, in, tt.objects, tt.o)
		if c.force() != tt.want || len(c.unusedOf("web")) != tt.unused {
			t.Errorf("%s: %s in force, want %s; not used: %q", name, c.force(), tt.want, c.unusedOf("web"))
		}
		if y := c.accepted.Sections["web"]["y"]; tt.o != nil && tt.o.Values != "" && y != nil {
			t.Errorf("%s: the section counts, too", name)
		}
	}
}

func TestDriftOfAnObject(t *testing.T) {
	c, o := newConfig(), &Object{Drift: "ignore"}
	data := map[string]string{"webDrift": "report", "webPaused": "true"}
	c.with(Present, data, Present, o)
	if c.force() != "<nil> paused ignore" || len(c.unusedOf("web")) != 1 || fmt.Sprint(c.Spec("web")) != "map[drift:ignore]" {
		t.Errorf("%s in force, spec %v, %q", c.force(), c.Spec("web"), c.Problems())
	}
	c.with(Missing, nil, Present, o) // what the ConfigMap said last stays, too
	if c.force() != "<nil> paused ignore" {
		t.Errorf("without the ConfigMap %s in force", c.force())
	}
	next := newConfig()
	next.Adopt(c.Keep())
	next.with(Present, data, Unreadable, nil)
	if next.force() != "<nil> paused ignore" {
		t.Errorf("without objects %s in force", next.force())
	}
	c.with(Present, data, Present, &Object{})
	if c.force() != "<nil> paused report" {
		t.Errorf("%s in force", c.force())
	}
}

func TestTheMistakeOfAnObjectNamesIt(t *testing.T) {
	c := newConfig()
	out := c.with(Present, nil, Present, &Object{Values: `{"bad":true}`})
	if len(out.Problems) != 1 || !strings.HasPrefix(out.Problems[0].Text, "Module web: ") {
		t.Errorf("problems %+v", out.Problems)
	}
}

// An object that is gone, or cannot be read, goes on to count, through a restart; one that says
// nothing more, and objects that are switched off, do not.
func TestAnObjectThatIsGoneGoesOnToCount(t *testing.T) {
	yes := true
	said := &Object{Generation: 3, Values: `{"x":2}`, Enabled: &yes, Paused: true}
	data := map[string]string{"web": "x: 1", "webEnabled": "false"}
	start := func() *Config {
		c := newConfig()
		c.with(Present, data, Present, said)
		next := newConfig()
		kept := c.Keep()
		for key := range kept {
			if !IsKey(key) {
				t.Errorf("%s is no key of the config", key)
			}
		}
		if broken := next.Adopt(maps.Clone(kept)); len(broken) > 0 {
			t.Fatal(broken)
		}
		if next.force() != "2 true paused" || next.Held() || len(next.Keep()) == 0 {
			t.Errorf("kept: %s, held %t", next.force(), next.Held())
		}
		return next
	}
	for name, tt := range map[string]struct {
		state   State
		objects State
		o       *Object
		want    string
	}{
		"gone":                      {Present, Present, nil, "2 true paused"},
		"gone, and the ConfigMap":   {Missing, Present, nil, "2 true paused"},
		"unreadable":                {Present, Unreadable, nil, "2 true paused"},
		"all unreadable":            {Unreadable, Unreadable, nil, "2 true paused"},
		"emptied":                   {Present, Present, &Object{}, "1 false"},
		"emptied, and no ConfigMap": {Missing, Present, &Object{}, "<nil>"},
		"switched off":              {Present, "", nil, "1 false"},
		"switched off, without one": {Missing, "", nil, "<nil>"},
	} {
		c := start()
		in := data
		if tt.state != Present {
			in = nil
		}
		c.with(tt.state, in, tt.objects, tt.o)
		if c.force() != tt.want {
			t.Errorf("%s: %s in force, want %s", name, c.force(), tt.want)
		}
		if c.with(tt.state, in, tt.objects, tt.o); c.force() != tt.want {
			t.Errorf("%s, again: %s in force, want %s", name, c.force(), tt.want)
		}
	}
	c := start()
	c.with(Present, data, Present, nil)
	if spec := fmt.Sprint(c.Spec("web")); spec != "map[enabled:true paused:true values:map[x:2]]" {
		t.Errorf("it is made again with %s", spec)
	}
	if c.with(Present, data, Present, said); c.Seen().Objects["web"].Generation != 3 {
		t.Errorf("generation %d", c.Seen().Objects["web"].Generation)
	}
	if !c.Drop("web") || c.Paused("web") || c.Spec("web") != nil {
		t.Errorf("dropped: %s", c.force())
	}
}

// A change of one object has one section read.
func TestOnlyTheObjectThatDiffersIsRead(t *testing.T) {
	c := newConfig()
	read := ""
	c.o.Evaluate = func(what string, _ func() []string, evaluate func() error) error {
		if !strings.HasSuffix(read, what+" ") { // parsed, then checked
			read += what + " "
		}
		return evaluate()
	}
	c.with(Missing, nil, Present, &Object{Values: `{"x":1}`})
	read = ""
	c.with(Missing, nil, Present, &Object{Values: `{"x":1}`, Generation: 9})
	if read != "" {
		t.Errorf("the same values: read %q", read)
	}
	out := c.with(Missing, nil, Present, &Object{Values: `{"x":2}`})
	if read != "spec.values of Module web " || fmt.Sprint(out.Moved) != "[web]" || out.All {
		t.Errorf("read %q, moved %v, all %t", read, out.Moved, out.All)
	}
	if out = c.with(Missing, nil, Present, &Object{Values: `{"x":2}`, Paused: true}); fmt.Sprint(out.Moved) != "[web]" || !out.All {
		t.Errorf("a pause: moved %v, all %t", out.Moved, out.All)
	}
}

// The check of an object says what its condition would, and lets pass what is in force.
func TestTheCheckOfAnObject(t *testing.T) {
	web := sections()[1]
	direct := func(_ string, _ func() []string, evaluate func() error) error { return evaluate() }
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for name, tt := range map[string]struct {
		spec string
		last map[string]any
		want string
	}{
		"good":     {`{"x":1}`, nil, ""},
		"bad":      {`{"bad":true}`, nil, "Module web: k: must not be bad"},
		"in force": {`{"bad":true}`, map[string]any{"bad": true}, ""},
		"another":  {`{"bad":true}`, map[string]any{"x": int64(1)}, "must not be bad"},
		"deep":     {deep, nil, "Module web: config web: is nested deeper than 100 levels"},
		"large":    {`{"x":"` + strings.Repeat("x", MaxSection) + `"}`, nil, "KiB"},
		"huge":     {`{"x":"` + strings.Repeat("x", 2<<20) + `"}`, nil, "is larger than 1024 KiB"},
	} {
		texts := CheckObject(web, tt.spec, tt.last, direct, nil)
		if got := strings.Join(texts, "; "); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	barred := func(what string, _ func() []string, _ func() error) error {
		return errors.New(what + " ended the process")
	}
	if texts := CheckObject(web, `{"x":1}`, nil, barred, nil); len(texts) != 1 || !strings.Contains(texts[0], "review of Module web ended the process") {
		t.Errorf("barred: %q", texts)
	}
	web.Asks = "code"
	asked := 0
	ask := func(q Question) string {
		asked++
		return fmt.Sprint("x was ", q.Old["x"], ", and would be ", q.New["x"])
	}
	if texts := CheckObject(web, `{"x":2}`, map[string]any{"x": int64(1)}, direct, ask); fmt.Sprint(texts) != "[Module web: config web: x was 1, and would be 2]" {
		t.Errorf("asked: %q", texts)
	}
	for _, spec := range []string{`{"x":1}`, `{"bad":true}`} {
		CheckObject(web, spec, map[string]any{"x": int64(1)}, direct, ask)
	}
	if asked != 1 {
		t.Errorf("asked %d times: also about what is in force, or does not pass the schemas", asked)
	}
	c := newConfig()
	c.with(Present, nil, Present, &Object{Values: `{"bad":true}`})
	if got := CheckObject(web, `{"bad":true}`, nil, direct, nil); len(got) != 1 || got[0] != c.Problems()["web"][0].Text {
		t.Errorf("%q, but the condition says %q", got, c.Problems()["web"])
	}
}
