package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The hooks of shell-operator in docs/hooks.md do what ours beside them do: they print their bindings, and write
// what test/testdata/hooks/theirs.yaml says.
func TestPairsOfOthersRun(t *testing.T) {
	for _, program := range []string{"bash", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("hooks of shell-operator need ", program)
		}
	}
	hooks, seen := map[string]string{}, map[string]bool{}
	_, sections := pairsOfThePage(t)
	for _, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		for i, m := range inBash.FindAllStringSubmatch(section, -1) {
			hooks[heading+" "+strconv.Itoa(i)] = m[1]
		}
	}
	var runs []struct {
		Hook, File, Holds string
		Context           []any
	}
	if err := yaml.Unmarshal([]byte(read(t, "test/testdata/hooks/theirs.yaml")), &runs); err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		seen[run.Hook] = true
		h := newTheirs(t, hooks[run.Hook])
		if config := h.run(t, "--config"); !strings.Contains(config, "configVersion") {
			t.Errorf("%s prints %q as its config", run.Hook, config)
		}
		context, err := json.Marshal(run.Context)
		if err != nil {
			t.Fatal(err)
		}
		h.write(t, "BINDING_CONTEXT_PATH", string(context))
		h.write(t, "OUTPUT", h.run(t))
		if got := h.read(t, run.File); !strings.Contains(got, run.Holds) {
			t.Errorf("%s: %s holds %q, want %q", run.Hook, run.File, got, run.Holds)
		}
	}
	for name := range hooks {
		if !seen[name] {
			t.Errorf("test/test/testdata/hooks/theirs.yaml has no run of %s", name)
		}
	}
}

// theirs is a hook of shell-operator and the files that it is given, in one folder.
type theirs struct {
	folder string
	env    []string
}

func newTheirs(t *testing.T, hook string) *theirs {
	t.Helper()
	h := &theirs{folder: t.TempDir()}
	h.env = append(os.Environ(), "PATH="+h.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, file := range []string{
		"BINDING_CONTEXT_PATH", "KUBERNETES_PATCH_PATH", "METRICS_PATH", "VALUES_PATH", "VALUES_JSON_PATCH_PATH",
		"VALIDATING_RESPONSE_PATH", "CONVERSION_RESPONSE_PATH", "KUBECTL", "OUTPUT",
	} {
		h.env = append(h.env, file+"="+filepath.Join(h.folder, file))
		h.write(t, file, "")
	}
	h.write(t, "VALUES_PATH", `{"global": {"highAvailability": true}}`)
	h.write(t, "hook.sh", hook)
	h.write(t, "uuidgen", "#!/bin/sh\necho some-uuid\n")
	h.write(t, "kubectl", "#!/bin/sh\nprintf '%s\\n' \"$*\" >> $KUBECTL\necho '{\"data\": {\"zone\": \"north\"}}'\n")
	return h
}

func (h *theirs) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.folder, file), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// read returns the file; JSON in its shortest form.
func (h *theirs) read(t *testing.T, file string) string {
	t.Helper()
	text := read(t, filepath.Join(h.folder, file))
	var out bytes.Buffer
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var v json.RawMessage
		if d.Decode(&v) != nil || json.Compact(&out, v) != nil {
			return text
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// run runs the hook, and returns its output.
func (h *theirs) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-e", filepath.Join(h.folder, "hook.sh")}, args...)...)
	cmd.Env = h.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
