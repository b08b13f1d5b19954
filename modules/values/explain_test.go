package values

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

// files of a tree, by path.
type files map[string]string

func (f files) read(name string) []byte { return []byte(f[name]) }

func (f files) parse(t *testing.T, name string) object {
	t.Helper()
	m, err := parseYAML([]byte(f[name]))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (f files) schema(t *testing.T, name string) *Schema {
	t.Helper()
	if f[name] == "" {
		return nil
	}
	s, err := ParseSchema(name, []byte(f[name]), func(other string) ([]byte, error) { return f.read("web/openapi/" + other), nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at puts a call and its run on operations.
func at(pos string, run uint64, ops ...effect.ValueOp) []effect.ValueOp {
	for i := range ops {
		ops[i].Pos = fmt.Sprintf("%s:%d", pos, i+1)
	}
	return Located(nil, ops, &effect.Origin{Run: run, At: time.Unix(int64(run), 0)})
}

func secret(op effect.ValueOp, paths ...string) effect.ValueOp {
	for _, p := range paths {
		op.Secrets = append(op.Secrets, strings.FieldsFunc(p, func(r rune) bool { return r == '.' }))
	}
	return op
}

// web is the input of a module of that name: chart, tree, schemas and config from files
// of these names, hooks as given.
func web(t *testing.T, f files, hooks ...HookLayer) ExplainInput {
	t.Helper()
	static := func(key string) []Layer {
		var out []Layer
		if key == "web" && f["web/values.yaml"] != "" {
			out = append(out, Layer{Name: LayerChart, File: "web/values.yaml", Data: f.parse(t, "web/values.yaml")})
		}
		if section, ok := f.parse(t, "values.yaml")[key].(object); ok {
			out = append(out, Layer{Name: LayerTree, File: "values.yaml", Data: section})
		}
		return out
	}
	in := ExplainInput{Read: f.read}
	in.Section = SectionSources{
		Section: Section{
			Name: "web", Key: "web", Static: static("web"), Config: f.parse(t, "config"), Hooks: hooks,
			ConfigSchema: f.schema(t, "web/openapi/config-values.yaml"), Schema: f.schema(t, "web/openapi/values.yaml"),
		},
		ConfigName: "ConfigMap ns/starling", ConfigText: f["config"],
	}
	in.Global = &SectionSources{
		Section:    Section{Name: "global", Key: "global", Static: static("global"), Config: f.parse(t, "global config")},
		ConfigName: "ConfigMap ns/starling", ConfigText: f["global config"],
	}
	return in
}

// show is one line a path: the value, and who says what, the winner first.
func show(x Explanation) []string {
	var out []string
	text := func(v any, removed bool) string {
		if removed {
			return "gone"
		}
		return fmt.Sprint(v)
	}
	for _, e := range x.Values {
		line := e.Path + " = " + text(e.Value, e.Removed)
		for _, s := range e.Chain {
			line += fmt.Sprintf(" | %s %s", text(s.Value, s.Removed), s.From())
			if p := s.Place(); p != "" {
				line += " " + p
			}
			if s.Run > 0 {
				line += fmt.Sprintf(" run %d", s.Run)
			}
		}
		out = append(out, line)
	}
	return out
}

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name  string
		files files
		hooks []HookLayer
		want  []string
	}{
		{name: "each file, the upper one wins",
			files: files{
				"web/values.yaml": "# ports\nport: 80\nimage:\n  tag: '1'\n  name: web\n",
				"values.yaml":     "web:\n  image:\n    tag: '2'\n",
				"config":          "\nimage: {tag: '3'}\n",
			},
			want: []string{
				"image.name = web | web chart values.yaml web/values.yaml:5",
				"image.tag = 3 | 3 config ConfigMap ns/starling, web, line 2 | 2 tree values.yaml values.yaml:3 | 1 chart values.yaml web/values.yaml:4",
				"port = 80 | 80 chart values.yaml web/values.yaml:2",
			}},
		{name: "the same value again",
			files: files{"web/values.yaml": "a: 1\n", "config": "a: 1\n"},
			want:  []string{"a = 1 | 1 config ConfigMap ns/starling, web, line 1 | 1 chart values.yaml web/values.yaml:1"}},
		{name: "nulls",
			files: files{
				"web/values.yaml": "a: 1\nm:\n  x: 1\n  z: 2\nkept: null\n",
				"values.yaml":     "web:\n  m: null\n",
				"config":          "a: null\n",
			},
			want: []string{
				"a = gone | gone config ConfigMap ns/starling, web, line 1 | 1 chart values.yaml web/values.yaml:1",
				"kept = <nil> | <nil> chart values.yaml web/values.yaml:5",
				"m = gone | gone tree values.yaml values.yaml:2 | map[x:1 z:2] chart values.yaml web/values.yaml:2",
			}},
		{name: "a null above what comes back",
			files: files{"web/values.yaml": "m:\n  x: 1\n", "values.yaml": "web:\n  m: null\n", "config": "m: {x: 3}\n"},
			want:  []string{"m.x = 3 | 3 config ConfigMap ns/starling, web, line 1 | gone tree values.yaml values.yaml:2 | 1 chart values.yaml web/values.yaml:2"}},
		{name: "a list is one value, a scalar replaces a map",
			files: files{"web/values.yaml": "l: [1, 2]\nm: {x: 1}\n", "config": "l:\n- 3\nm: x\n"},
			want: []string{
				"l = [3] | [3] config ConfigMap ns/starling, web, line 1 | [1 2] chart values.yaml web/values.yaml:1",
				"m = x | x config ConfigMap ns/starling, web, line 3 | map[x:1] chart values.yaml web/values.yaml:2",
			}},
		{name: "schema defaults fill gaps",
			files: files{
				"web/openapi/config-values.yaml": "properties:\n  port:\n    type: integer\n    default: 80\n  tls:\n    type: object\n    default: {mode: auto}\n    properties:\n      mode: {type: string}\n  size: {type: integer, default: 1}\n",
				"web/openapi/values.yaml":        "x-extend: {schema: config-values.yaml}\nproperties:\n  extra:\n    type: string\n    default: x\n",
				"config":                         "size: 5\n",
			},
			want: []string{
				"extra = x | x schema default web/openapi/values.yaml:5",
				"port = 80 | 80 schema default web/openapi/config-values.yaml:4",
				"size = 5 | 5 config ConfigMap ns/starling, web, line 1 | 1 schema default web/openapi/config-values.yaml:10",
				"tls.mode = auto | auto schema default web/openapi/config-values.yaml:7",
			}},
		{name: "what is taken away is filled again",
			files: files{
				"web/openapi/config-values.yaml": "properties:\n  port: {type: integer, default: 80}\n",
				"values.yaml":                    "web: {port: 1}\n",
				"config":                         "port: null\n",
			},
			want: []string{"port = 80 | 80 schema default web/openapi/config-values.yaml:2 | gone config ConfigMap ns/starling, web, line 1 | 1 tree values.yaml values.yaml:1"}},
		{name: "a null where nothing is, and the schema takes none",
			files: files{
				"web/openapi/config-values.yaml": "properties:\n  port: {type: integer}\n  tls: {type: object}\n  name: {type: string, nullable: true}\n  host: {type: string}\n",
				"web/values.yaml":                "host: null\n",
				"config":                         "port: null\ntls: null\nname: null\n",
			},
			want: []string{
				"host = gone | gone chart values.yaml web/values.yaml:1",
				"name = <nil> | <nil> config ConfigMap ns/starling, web, line 3",
				"port = gone | gone config ConfigMap ns/starling, web, line 1",
				"tls = gone | gone config ConfigMap ns/starling, web, line 2",
			}},
		{name: "defaults in maps of any key",
			files: files{
				"web/openapi/config-values.yaml": "properties:\n  by:\n    type: object\n    additionalProperties:\n      type: object\n      properties:\n        size: {type: integer, default: 2}\n",
				"config":                         "by: {a.b: {}}\n",
			},
			want: []string{`by["a.b"].size = 2 | 2 schema default web/openapi/config-values.yaml:7`}},
		{name: "hooks above the config, their defaults below it",
			files: files{"web/values.yaml": "a: 1\nb: 1\nc: 1\n", "config": "b: 2\nc: 2\n"},
			hooks: []HookLayer{{"web/h.star:f", at("h.star", 4, deflt("a", int64(9)), deflt("b", int64(9)), set("c", int64(9)))}},
			want: []string{
				"a = 9 | 9 hook default web/h.star:f h.star:1 run 4 | 1 chart values.yaml web/values.yaml:1",
				"b = 2 | 2 config ConfigMap ns/starling, web, line 1 | 9 hook default web/h.star:f h.star:2 run 4 | 1 chart values.yaml web/values.yaml:2",
				"c = 9 | 9 hook web/h.star:f h.star:3 run 4 | 2 config ConfigMap ns/starling, web, line 2 | 1 chart values.yaml web/values.yaml:3",
			}},
		{name: "sets replace maps, merges do not, removes take away",
			files: files{"web/values.yaml": "s: {x: 1}\nm: {x: 1}\nr: {x: 1, on: 1}\ne: 1\n"},
			hooks: []HookLayer{
				{"a", at("a.star", 1, set("s", object{"z": int64(2)}), merge("m", object{"z": int64(2)}))},
				{"b", at("b.star", 2, remove("r.x"), remove("nothing"), merge("e", object{}))},
			},
			want: []string{
				"e = map[] | map[] hook b b.star:3 run 2 | 1 chart values.yaml web/values.yaml:4",
				"m.x = 1 | 1 chart values.yaml web/values.yaml:2",
				"m.z = 2 | 2 hook a a.star:2 run 1",
				"r.true = 1 | 1 chart values.yaml web/values.yaml:3", // as YAML has it
				"r.x = gone | gone hook b b.star:1 run 2 | 1 chart values.yaml web/values.yaml:3",
				"s.z = 2 | 2 hook a a.star:1 run 1",
			}},
		{name: "a call inside what an earlier one has set",
			hooks: []HookLayer{{"a", at("a.star", 1, set("m", object{"x": int64(1)}), set("m.y", int64(2)))}},
			want:  []string{"m.x = 1 | 1 hook a a.star:1 run 1", "m.y = 2 | 2 hook a a.star:2 run 1"}},
		{name: "a layer of an earlier process",
			hooks: []HookLayer{{"a", ops(set("x", int64(1)))}},
			want:  []string{"x = 1 | 1 hook a"}},
		{name: "global values above those of the chart",
			files: files{
				"web/values.yaml": "global: {registry: a, domain: b, own: c}\n",
				"values.yaml":     "global:\n  domain: d\n",
				"global config":   "registry: e\n",
			},
			want: []string{
				"global.domain = d | d tree values.yaml values.yaml:2 | b chart values.yaml web/values.yaml:1",
				"global.own = c | c chart values.yaml web/values.yaml:1",
				"global.registry = e | e config ConfigMap ns/starling, global, line 1 | a chart values.yaml web/values.yaml:1",
			}},
		{name: "anchors and merged maps",
			files: files{"values.yaml": "x: &x\n  a: 1\nweb:\n  <<: *x\n  b: 2\n"},
			want:  []string{"a = 1 | 1 tree values.yaml values.yaml:2", "b = 2 | 2 tree values.yaml values.yaml:5"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, show(web(t, test.files, test.hooks...).Explain())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExplainGlobalAndSwitches(t *testing.T) {
	f := files{"values.yaml": "global:\n  domain: x\nwebEnabled: false\n"}
	yes, no := true, false
	in := ExplainInput{Read: f.read}
	in.Section = SectionSources{Section: Section{Name: "global", Key: "global",
		Static: []Layer{{Name: LayerTree, File: "values.yaml", Data: object{"domain": "x"}}},
		Hooks:  []HookLayer{{"global/a.star:f", at("global/a.star", 3, set("nodes", int64(2)))}},
	}}
	op := at("global/a.star", 3, set("webEnabled", true))[0]
	in.Switches = []SwitchSources{
		{Key: "dbEnabled", Default: true, Pos: "db/module.star:1", Config: &no, ConfigName: "ConfigMap ns/starling"},
		{Key: "webEnabled", Tree: &no, TreeFile: "values.yaml", Hook: "global/a.star:f", Op: &op},
		{Key: "cacheEnabled", Config: &yes, ConfigName: "ConfigMap ns/starling"},
	}
	want := []string{
		"cacheEnabled = true | true config ConfigMap ns/starling, cacheEnabled | false module.star",
		"dbEnabled = false | false config ConfigMap ns/starling, dbEnabled | true module.star db/module.star:1",
		"global.domain = x | x tree values.yaml values.yaml:2",
		"global.nodes = 2 | 2 hook global/a.star:f global/a.star:1 run 3",
		"webEnabled = true | true hook global/a.star:f global/a.star:1 run 3 | false tree values.yaml values.yaml:3 | false module.star",
	}
	if diff := cmp.Diff(want, show(in.Explain())); diff != "" {
		t.Error(diff)
	}
}

func TestExplainTellsLinesOnlyOfTheConfigInForce(t *testing.T) {
	in := web(t, files{"config": "a: 1\n"})
	in.Section.ConfigText = "x: 1\na: 2\n" // refused: the one before is in force
	if diff := cmp.Diff([]string{"a = 1 | 1 config ConfigMap ns/starling, web"}, show(in.Explain())); diff != "" {
		t.Error(diff)
	}
}

func TestExplainHidesSecrets(t *testing.T) {
	layer := HookLayer{"a", at("a.star", 1,
		secret(set("token", "s3cr3t-token"), ""),
		secret(set("db", object{"hosts": []any{"one", "pw"}, "url": "open"}), "hosts.1"),
		set("copied", "https://user:s3cr3t-token@host"),
		set("open", "open"),
		secret(set("pin", "7aB2xy"), ""),
		set("line", "pin=7aB2xy!"),
	)}
	in := web(t, files{"config": "again: s3cr3t-token\ntoken: mine\n"}, layer)
	x := in.Explain()
	want := []string{
		"again = *** | *** config ConfigMap ns/starling, web, line 1",
		"copied = https://user:***@host | https://user:***@host hook a a.star:3 run 1",
		"db.hosts = [one ***] | [one ***] hook a a.star:2 run 1",
		"db.url = open | open hook a a.star:2 run 1",
		"line = pin=***! | pin=***! hook a a.star:6 run 1",
		"open = open | open hook a a.star:4 run 1",
		"pin = *** | *** hook a a.star:5 run 1",
		"token = *** | *** hook a a.star:1 run 1 | mine config ConfigMap ns/starling, web, line 2",
	}
	if diff := cmp.Diff(want, show(x)); diff != "" {
		t.Error(diff)
	}
	before, after := web(t, nil).Explain(), NewComposer(in.Section.Section).Compose()
	if len(before.Values) != 0 {
		t.Errorf("nothing explains %v", before.Values)
	}
	for _, c := range Changes(object{"token": "older", "db": object{"hosts": []any{"one"}}}, after, x) {
		if text := fmt.Sprint(c.Old, c.New); strings.Contains(text, "s3cr3t") || strings.Contains(text, "pw") {
			t.Errorf("%s shows %s", c.Path, text)
		}
		if c.Path == "token" && (c.Old != hidden || c.New != hidden || !c.Secret) {
			t.Errorf("the token changes as %+v", c)
		}
	}
}

func TestChanges(t *testing.T) {
	f := files{"web/values.yaml": "port: 80\nl: [1]\nm: {x: 1}\ns: 1\ne: {}\ng: 1\n", "config": "g: null\n"}
	in := web(t, f, HookLayer{"a", at("a.star", 5, set("nodes", []any{"n1"}), set("s", object{"x": int64(1)}), set("e.x", int64(1)))})
	now := ModuleView(NewComposer(in.Section.Section).Compose(), nil)
	before := object{"port": int64(80), "l": []any{int64(2)}, "m": object{"x": int64(1), "y": object{"z": int64(1)}}, "s": int64(1), "e": object{}, "g": int64(1), "global": object{}}
	var got []string
	for _, c := range Changes(before, now, in.Explain()) {
		why := "nobody"
		if c.Why != nil {
			why = c.Why.From() + " " + c.Why.Place()
		}
		got = append(got, fmt.Sprintf("%s %s %v %v: %s", c.Kind, c.Path, c.Old, c.New, why))
	}
	want := []string{
		"add e.x <nil> 1: hook a a.star:3",
		"remove g 1 <nil>: config ConfigMap ns/starling, web, line 1",
		"update l [2] [1]: chart values.yaml web/values.yaml:2",
		"remove m.y.z 1 <nil>: nobody",
		"add nodes <nil> [n1]: hook a a.star:1",
		"remove s 1 <nil>: nobody",
		"add s.x <nil> 1: hook a a.star:2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if same := Changes(now, now, in.Explain()); len(same) > 0 {
		t.Errorf("no change is %v", same)
	}
}

func TestFind(t *testing.T) {
	in := web(t, files{"web/values.yaml": "image: {tag: x, name: y}\nnote:\n  app.example.com/name: z\n  app: {example: 1}\nhosts:\n- name: a\n", "config": "image: {name: null}\n", "global config": "domain: d\n"})
	in.ChartKey = "web"
	x := in.Explain()
	for _, test := range []struct{ path, want, err string }{
		{"image.tag", "image.tag", ""},
		{"image", "image.name image.tag", ""},
		{"image.name", "image.name", ""},
		{"note.app.example.com/name", `note["app.example.com/name"]`, ""},
		{`note["app.example.com/name"]`, `note["app.example.com/name"]`, ""},
		{`["note", "app.example.com/name"]`, `note["app.example.com/name"]`, ""},
		{"note.app", "note.app.example", ""},
		{"note.app.example", "note.app.example", ""},
		{"hosts.0.name", "hosts", ""},
		{"hosts.1.name", "", "module web has no value at hosts.1.name, did you mean \"hosts\"?"},
		{"global.domain", "global.domain", ""},
		{"web.image.tag", "image.tag", ""},
		{"image.tga", "", `module web has no value at image.tga, did you mean "image.tag"?`},
		{"domain", "", `module web has no value at domain, did you mean "global.domain"?`},
		{"tag", "", `module web has no value at tag, did you mean "image.tag"?`},
		{"image.tag.x", "", `module web has no value at image.tag.x, did you mean "image.tag"?`},
		{"zzzzzzzz", "", "module web has no value at zzzzzzzz; leave the path out to see all"},
		{"", "", "a path has 1 to 4096 characters, not 0"},
	} {
		found, _, err := x.Find(test.path)
		var paths []string
		for _, e := range found {
			paths = append(paths, e.Path)
		}
		message := ""
		if err != nil {
			message = err.Error()
		}
		if strings.Join(paths, " ") != test.want || message != test.err {
			t.Errorf("%s: found %v, error %q", test.path, paths, message)
		}
	}
}
