package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var updateMistakes = flag.Bool("update", false, "write testdata/mistakes.txtar")

const mistakesFile = "testdata/mistakes.txtar"

// mistake is a tree with a mistake in it, the edit that mends it, and all that the commands say.
type mistake struct {
	name  string
	files []txtar.File // of the tree
	fix   string
	said  string
}

// TestMistakes makes mistakes of people who come from Python, Kubernetes, Helm or shell-operator. `starling check`, or
// `starling test` when that sees nothing wrong, must say where the mistake is and how the line is written: the edit is
// made as it says, all words that the edit brings must stand in what was said, but for those that a fix names as its
// author's own with =, and then nothing is wrong any more.
func TestMistakes(t *testing.T) {
	data, err := os.ReadFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	all := mistakes(t, archive)
	if len(all) < 100 {
		t.Errorf("%d mistakes, want at least 100", len(all))
	}
	said := make([]string, len(all))
	t.Run("all", func(t *testing.T) {
		for i, m := range all {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				said[i] = m.make(t)
			})
		}
	})
	if !*updateMistakes {
		return
	}
	for i, m := range all {
		at := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == m.name+"/said" })
		file := txtar.File{Name: m.name + "/said", Data: []byte(said[i])}
		if at >= 0 {
			archive.Files[at] = file
			continue
		}
		fix := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == m.name+"/fix" })
		archive.Files = slices.Insert(archive.Files, fix+1, file)
	}
	if err := os.WriteFile(mistakesFile, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// mistakes reads the archive. A file NAME/run is the body of a function: the rest of its hook is added.
func mistakes(t *testing.T, archive *txtar.Archive) (all []*mistake) {
	t.Helper()
	for _, f := range archive.Files {
		name, path, _ := strings.Cut(f.Name, "/")
		if len(all) == 0 || all[len(all)-1].name != name {
			if slices.ContainsFunc(all, func(m *mistake) bool { return m.name == name }) {
				t.Fatalf("two mistakes are called %s", name)
			}
			all = append(all, &mistake{name: name})
		}
		m, text := all[len(all)-1], string(f.Data)
		switch path {
		case "fix":
			m.fix = text
		case "said":
			m.said = text
		case "run":
			body := "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
			m.add("web/hooks/a.star", "def f(ctx):\n"+body+"\n\nhook(f, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\")])\n")
		default:
			m.add(path, text)
		}
	}
	for _, m := range all {
		if !m.has("web/module.star") && !m.has("no-module") {
			m.add("web/module.star", `module(enabled = True, namespace = "web", grants = [grant("v1", "ConfigMap", verbs = ["*"]), grant("v1", "Secret", verbs = ["*"]), grant("v1", "Node", verbs = ["*"])])`+"\n")
		}
		if !slices.ContainsFunc(m.files, func(f txtar.File) bool { return strings.HasSuffix(f.Name, "_test.star") }) {
			m.add("web/all_test.star", "load(\"@std//testing.star\", \"node\")\n\ndef test_it(t):\n    t.cluster.apply(node(\"a\", ready = True), node(\"b\", ready = False))\n    t.start()\n")
		}
	}
	return all
}

func (m *mistake) add(path, text string) {
	m.files = append(m.files, txtar.File{Name: path, Data: []byte(text)})
}

func (m *mistake) has(path string) bool {
	return slices.ContainsFunc(m.files, func(f txtar.File) bool { return f.Name == path })
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// make makes the mistake, and mends it.
func (m *mistake) make(t *testing.T) string {
	said, wrong := m.say(t, m.files)
	if !wrong {
		t.Errorf("nobody says that something is wrong:\n%s", said)
	}
	if !*updateMistakes && said != m.said {
		t.Errorf("got:\n%s\nwant:\n%s", said, m.said)
	}
	fix, own, _ := strings.Cut(m.fix, "\n=")
	var words []string
	known := ""
	for _, f := range m.files {
		known += f.Name + "\n" + string(f.Data)
	}
	mended := slices.Clone(m.files)
	for _, edit := range edits(t, fix) {
		if !replace(mended, edit[0], edit[1]) {
			t.Fatalf("no file, or more than one, has %q", edit[0])
		}
		words = append(words, word.FindAllString(edit[1], -1)...)
	}
	if len(words) == 0 && !strings.Contains(m.fix, "\n+ ") {
		t.Error("there is no fix")
	}
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains(word.FindAllString(known+said+own, -1), w)
	})
	if len(words) > 0 {
		t.Errorf("nobody says %q, which mends it:\n%s", words, said)
	}
	if said, wrong := m.say(t, mended); wrong {
		t.Errorf("the fix does not mend it:\n%s", said)
	}
	return said
}

// edits reads a fix: lines that begin with - stand in a file, and those after them that begin with + come in their place.
func edits(t *testing.T, fix string) (out [][2]string) {
	t.Helper()
	var was byte
	for line := range strings.Lines(fix) {
		if line == "\n" {
			continue
		}
		sign, text := line[0], strings.TrimPrefix(line[1:], " ")
		if sign != '-' && sign != '+' {
			t.Fatalf("a fix has lines that begin with - and +: %s", line)
		}
		if sign == '-' && was != '-' {
			out = append(out, [2]string{})
		}
		at := &out[len(out)-1][0]
		if sign == '+' {
			at = &out[len(out)-1][1]
		}
		if *at != "" {
			*at += "\n"
		}
		*at += strings.TrimSuffix(text, "\n")
		was = sign
	}
	return out
}

// replace makes an edit in the only file that has the text, or in the only name of a file.
func replace(files []txtar.File, from, to string) bool {
	n := 0
	for i, f := range files {
		if strings.Count(string(f.Data), from) == 1 {
			files[i].Data = []byte(strings.Replace(string(f.Data), from, to, 1))
			n++
		}
	}
	for i, f := range files {
		if n == 0 && f.Name == from {
			files[i].Name = to
			return true
		}
	}
	return n == 1
}

var took = regexp.MustCompile(`\s*\(?\b\d+\.\d\ds\)?`)

// say writes the tree to a folder, and gives what check, or else test, says of it.
func (m *mistake) say(t *testing.T, files []txtar.File) (said string, wrong bool) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	said, err := ran(t, "check", "--strict", dir)
	if err == nil {
		said, err = ran(t, "test", dir+"/...")
	}
	said = strings.ReplaceAll(said, dir+"/", "")
	said = strings.ReplaceAll(said, dir, ".")
	return took.ReplaceAllString(said, ""), err != nil
}

// ran runs a command in this process.
func ran(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.WithoutCancel(t.Context()))
	return out.String(), err
}
