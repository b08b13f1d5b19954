package migrate

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/modules/tree"
)

// Each broken file is named with the place where it is broken, and a module beside it is brought over.
func TestBrokenFilesHaveTheirPlaces(t *testing.T) {
	sh := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("#!/bin/bash\n" + text), Mode: 0o755}
	}
	plain := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	r, err := AddonOperator(t.Context(), fstest.MapFS{
		"values.yaml":                       plain("global:\n  a: 1\n b: 2\n"),
		"010-web/values.yaml":               plain("web:\n  a: 1\n  b: [\n"),
		"010-web/Chart.yaml":                plain("name: web\nversion: [\n"),
		"010-web/templates/a.yaml":          plain("a: 1\n"),
		"010-web/openapi/values.yaml":       plain("type: object\nproperties:\n  a: {type: strin}\n"),
		"010-web/crds/a.yaml":               plain("kind: CustomResourceDefinition\nspec:\n\t- x\n"),
		"010-web/hooks/yaml.sh":             sh("# One.\ncat <<EOF\nconfigVersion: v1\nkubernetes:\n- kind: Pod\n  name: a: b\nEOF\n"),
		"010-web/hooks/kind.sh":             sh("cat <<EOF\nconfigVersion: v1\nkubernetes:\n- kind: 5\nEOF\n"),
		"010-web/hooks/early.py":            sh("print('''configVersion: v1\nonStartup: soon\n''')\n"),
		"010-web/hooks/old.sh":              sh("echo 'configVersion: v0'\n"),
		"010-web/hooks/part.sh":             sh("cat <<EOF\nconfigVersion: v1\nschedule: [{crontab: '61 * * * *'}]\nkubernetes: [{kind: Pod, jqFilter: '.a |'}]\nEOF\n"),
		"010-web/hooks/many.sh":             sh("cat <<EOF\nconfigVersion: v1\na: &a [1]\nb: &b [" + strings.Repeat("*a,", 5000) + "]\nc: [" + strings.Repeat("*b,", 5000) + "]\nEOF\n"),
		"010-web/hooks/half.go":             plain("package hooks\n\nvar _ = sdk.RegisterFunc(&go_hook.HookConfig{\n"),
		"010-web/hooks/large.sh":            sh(strings.Repeat("#", maxSource)),
		"020-jobs/hooks/fine.sh":            sh("cat <<EOF\nconfigVersion: v1\nonStartup: 1\nEOF\n"),
		"030-alone/openapi/values.yaml":     plain("\tx"),
		"030-alone/crds/a.yaml":             {Data: []byte("a"), Mode: fs.ModeNamedPipe},
		"030-alone/hooks/sub/deep/hook.sh":  sh("cat <<EOF\nconfigVersion: v1\nbeforeAll: 1\nEOF\n"),
		"030-alone/hooks/sub/deep/noexec":   plain("configVersion: v1\n"),
		"030-alone/hooks/sub/deep/elf":      {Data: []byte("\x7fELF"), Mode: 0o755},
		"030-alone/hooks/sub/deep/variable": sh("cat <<EOF\nconfigVersion: v1\nkubernetes:\n- kind: $KIND\nEOF\n"),
	}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"values.yaml: it is broken: line 3: did not find expected key",
		"010-web/values.yaml: it is broken: line 3: did not find expected node content",
		"010-web/Chart.yaml: Starling refuses it: ",
		"010-web/openapi/values.yaml: the schema: line 3: a: type must be one of",
		"010-web/crds/a.yaml: nothing but CustomResourceDefinitions may be in crds/: document 1: yaml: line 3: found character",
		"010-web/hooks/yaml.sh: the config is no YAML: yaml: line 7: mapping values are not allowed",
		"010-web/hooks/kind.sh: line 3: the config: kubernetes.kind must not be number",
		"010-web/hooks/early.py: line 2: the config: onStartup must not be string",
		"010-web/hooks/old.sh: line 2: the config is not of configVersion v1",
		"010-web/hooks/part.sh: a schedule: cron \"61 * * * *\"",
		"010-web/hooks/part.sh: the filter of \"pod\": character 5",
		"010-web/hooks/many.sh: line 3: the config ",
		"010-web/hooks/half.go: it is no Go: line 3:",
		"010-web/hooks/large.sh: it is larger than 256 KiB",
		"030-alone/openapi/values.yaml: the schema: ",
		"030-alone/crds/a.yaml: it is no file of at most 4 MiB",
		"030-alone/hooks/sub/deep/hook.sh: before_all: it is for global hooks",
		"030-alone/hooks/sub/deep/noexec: it is not executable",
		"030-alone/hooks/sub/deep/elf: it is a binary",
		"030-alone/hooks/sub/deep/variable: line 2: its config is computed: it holds $KIND",
	} {
		if !slices.ContainsFunc(r.Notes, func(n Note) bool { return n.Fate == Left && strings.HasPrefix(n.String(), want) }) {
			t.Errorf("no note %q in\n%v", want, r.Notes)
		}
	}
	if !slices.ContainsFunc(r.Files, func(f tree.File) bool {
		return f.Path == "020-jobs/hooks/fine.star" && strings.Contains(string(f.Data), "startup(order = 1)")
	}) {
		t.Error("the module beside broken ones is not brought over")
	}
	loads(t, r)
}

// Each old tree is refused whole, or becomes one that loads.
func FuzzTree(f *testing.F) {
	for _, name := range []string{"addon.txtar", "shell.txtar"} {
		seed, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Add([]byte("-- old/010-web/values.yaml --\nweb: {a: [}\n-- old/010-web/hooks/a.sh --\n#!/bin/sh\ncat <<EOF\nconfigVersion: v1\nkubernetes: [{kind: ''}]\nEOF\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		old := fstest.MapFS{}
		for _, file := range txtar.Parse(data).Files {
			name := strings.TrimPrefix(file.Name, "old/")
			if !fs.ValidPath(name) || name == "." || len(old) > 50 {
				continue
			}
			mode := fs.FileMode(0o644)
			if strings.HasPrefix(string(file.Data), "#!") {
				mode = 0o755
			}
			old[name] = &fstest.MapFile{Data: file.Data, Mode: mode}
		}
		if r, err := AddonOperator(t.Context(), old, old, Options{Lambdas: true}); err == nil {
			loads(t, r)
		}
		if r, err := ShellOperator(t.Context(), old, "hooks", Options{}); err == nil {
			loads(t, r)
		}
	})
}
