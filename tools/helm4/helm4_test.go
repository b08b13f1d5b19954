// Package helm4 renders charts with Helm 3, as Starling does, and with Helm 4, and compares the bytes. Its differences
// stand in testdata/differences.txt, and docs/decisions says what they mean. It is a Go module apart: the product does
// not import Helm 4.
package helm4

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write testdata/differences.txt anew")

// file is one of a chart.
type file struct {
	name string
	data []byte
}

// rendered is what a version of Helm makes of a chart, in texts that can be compared, by what they are.
type rendered map[string]string

// charts are those of the corpus and of the examples, the chart of Starling itself, and small ones for what is known
// to be difficult; with the values that they are rendered with.
func charts(t *testing.T) (all map[string][]file, values map[string]map[string]any) {
	t.Helper()
	all, values = map[string][]file{}, map[string]map[string]any{}
	root := filepath.Join("..", "..")
	for _, dir := range []string{"e2e/charts", "examples", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "Chart.yaml" || strings.Contains(filepath.ToSlash(p), "/charts/") && dir != "e2e/charts" {
				return err
			}
			of := filepath.Dir(p)
			name, _ := filepath.Rel(root, of)
			if name = filepath.ToSlash(name); strings.Contains(strings.TrimPrefix(name, "e2e/charts/"), "/charts/") {
				return nil // a subchart
			}
			all[name] = folder(t, of)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "e2e/charts/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string]map[string]any
	if err := yaml.Unmarshal(data, &sections); err != nil {
		t.Fatal(err)
	}
	for module, v := range sections {
		values["e2e/charts/"+module+"/chart"] = v
	}
	small, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range small {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(p), ".txtar")
		for _, f := range a.Files {
			if f.Name != "user.yaml" {
				// txtar ends each file with a newline: ~ at the end is none.
				data := strings.NewReplacer("~\n", "", `\r`, "\r").Replace(string(f.Data))
				all[name] = append(all[name], file{f.Name, []byte(data)})
				continue
			}
			values[name] = parse(t, string(f.Data))
		}
	}
	return all, values
}

// folder reads the files of a chart; those that .helmignore names are no concern here.
func folder(t *testing.T, dir string) (files []file) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, p))
		files = append(files, file{p, data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ofHooks are values that hooks of examples set.
var ofHooks = map[string]string{
	"examples/certificates/web":          "{certificate: {hash: a}}",
	"examples/quickstart/hello":          "{global: {readyNodes: 1, nodeNames: [a]}}",
	"examples/recipes/count-into-values": "{internal: {replicas: 1}}",
}

// began is when the release of the records began.
var began = time.Date(2026, 11, 29, 1, 2, 3, 456789, time.UTC)

// counted are differences that are not listed one by one.
type counted struct{ charts, equal, texts, objects, newlines int }

// Each chart is rendered to the same bytes by both, but for the differences that testdata/differences.txt has. A text
// that Helm 3 makes anew each time, such as a password, is not compared.
func TestCharts(t *testing.T) {
	all, values := charts(t)
	for name, text := range ofHooks {
		values[name] = parse(t, text)
	}
	if len(all) < 30 {
		t.Fatalf("only %d charts were found", len(all))
	}
	n, out := &counted{charts: len(all)}, strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		three, four := render3(all[name], copied(t, values[name])), render4(all[name], copied(t, values[name]))
		for what, again := range render3(all[name], copied(t, values[name])) {
			if again != three[what] {
				delete(three, what)
				delete(four, what)
			}
		}
		for _, by := range []struct {
			what string
			own  rendered
			read func(string) string
		}{{"record of Helm 3", three, read4}, {"record of Helm 4", four, read3}} {
			if record, is := by.own[by.what]; is {
				delete(by.own, by.what)
				three[by.what+", and as the other one writes it"], four[by.what+", and as the other one writes it"] = sorted(record), sorted(by.read(record))
			}
		}
		n.texts += len(three)
		if found := n.differences(three, four); found == "" {
			n.equal++
		} else {
			fmt.Fprintf(&out, "\n%s\n%s", name, found)
		}
	}
	text := fmt.Sprintf("%d charts, %d texts.\n%d of %d objects and hooks end with a newline in Helm 4 alone, and mean the same.\n%d charts have no other difference.\n%s",
		n.charts, n.texts, n.newlines, n.objects, n.equal, out.String())
	golden := filepath.Join("testdata", "differences.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != text {
		t.Errorf("not what %s holds (%v); look at each difference, say in docs/decisions what it means, and run: go -C tools/helm4 test -update .\n%s", golden, err, text)
	}
}

func parse(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// copied are the same values for another use: Helm changes those that it is given.
func copied(t *testing.T, v map[string]any) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// sorted is JSON with its keys in order, without the times of files, which Helm 4 alone has, and those that have not
// come yet, which Helm 3 alone writes.
func sorted(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	var clean func(v any)
	clean = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "modtime")
			delete(v, "schemamodtime")
			for _, key := range []string{"deleted", "started_at", "completed_at"} {
				if v[key] == "" {
					delete(v, key)
				}
			}
			for _, below := range v {
				clean(below)
			}
		case []any:
			for _, below := range v {
				clean(below)
			}
		}
	}
	clean(v)
	return asJSON(v)
}

// differences names the texts that differ, each with its first line that does. Objects that differ in the space
// at their end and mean the same are counted alone.
func (n *counted) differences(three, four rendered) string {
	var out strings.Builder
	both := maps.Clone(three)
	maps.Copy(both, four)
	for _, what := range slices.Sorted(maps.Keys(both)) {
		a, inThree := three[what]
		b, inFour := four[what]
		object := strings.HasPrefix(what, "object ") || strings.HasPrefix(what, "hook ")
		if object {
			n.objects++
		}
		switch {
		case a == b:
		case !inThree:
			fmt.Fprintf(&out, "  %s: Helm 4 alone: %q\n", what, first(b))
		case !inFour:
			fmt.Fprintf(&out, "  %s: Helm 3 alone: %q\n", what, first(a))
		case object && strings.TrimSpace(a) == strings.TrimSpace(b) && same(a, b):
			n.newlines++
		default:
			at, left, right := line(a, b)
			fmt.Fprintf(&out, "  %s: line %d\n    3: %s\n    4: %s\n", what, at, left, right)
		}
	}
	return out.String()
}

// same says that two objects mean the same.
func same(a, b string) bool {
	var x, y any
	return yaml.Unmarshal([]byte(a), &x) == nil && yaml.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func first(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// line is the first line that differs, with its end.
func line(a, b string) (n int, left, right string) {
	as, bs := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	at := func(lines []string) string {
		if n < len(lines) {
			return fmt.Sprintf("%q", lines[n])
		}
		return "the end"
	}
	return n + 1, at(as), at(bs)
}

// isNotes says that a file is one of notes: Starling takes those of the chart alone.
func isNotes(name string) bool { return path.Base(name) == "NOTES.txt" }
