package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
)

// ranElsewhere are examples that need what this test has not, and the tests that run such a line.
var ranElsewhere = map[string]string{
	"starling get modules --context production --namespace starling-system": "TestPodsAreAskedFromOutside, on the real control plane",
	"starling get replicas --context production":                            "TestPodsAreAskedFromOutside, on the real control plane",
	"starling explain controller apps shop/blog":                            "TestScripts/explaincontroller",
	"starling fetch addons --update web":                                    "TestScripts/fetch",
	"starling detach":                                                       "TestScripts/detach",
	"starling lsp":                                                          "TestScripts/lsp",
}

// goesOn are examples that end with Ctrl-C.
var goesOn = []string{"starling run ", "starling dev ", "starling tui ", " -w", " logs -f"}

// Each command has an example in its help, and each line of it does what it says: in a folder with
// trees, before a simulated API server, beside a starling that runs.
func TestExamplesOfHelp(t *testing.T) {
	lines := map[string]bool{}
	command.Each(newRootCommand(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if strings.TrimSpace(cmd.Example) == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			lines[strings.TrimSpace(line)] = true
		}
	})
	for line, test := range ranElsewhere {
		if !lines[line] {
			t.Errorf("%q is no example any more", line)
		}
		if err := testIsThere(test); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		delete(lines, line)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/examples",
		Setup: func(env *testscript.Env) error {
			short := t.TempDir()
			env.Setenv("TMPDIR", short)
			env.Setenv("KUBECONFIG", env.WorkDir+"/kubeconfig")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"example": copyExample,
			"cluster": func(ts *testscript.TestScript, _ bool, args []string) { serveCluster(t, ts, args[0], args[1]) },
			"examples": func(ts *testscript.TestScript, _ bool, args []string) {
				run := strings.TrimSpace(ts.ReadFile(args[0])) // the id of a run
				var failed []string
				for n, line := range slices.Sorted(maps.Keys(lines)) {
					line = strings.NewReplacer("k3f9-12", run, "10s", "1s").Replace(line)
					if strings.HasPrefix(line, "starling new ") && !strings.Contains(line, " addons web count-pods") && !strings.Contains(line, " --from-run ") {
						line = strings.ReplaceAll(line, " addons", fmt.Sprintf(" fresh-%d", n)) // nothing is overwritten
					}
					if err := runExample(ts, line); err != nil {
						failed = append(failed, fmt.Sprintf("%s: %v", line, err))
					}
				}
				if len(failed) > 0 {
					ts.Fatalf("%s", strings.Join(failed, "\n"))
				}
			},
		},
	})
}

// testIsThere says whether the test that a text begins with is a script, or a function here or in e2e.
func testIsThere(text string) error {
	name, _, _ := strings.Cut(text, ",")
	if script, is := strings.CutPrefix(name, "TestScripts/"); is {
		_, err := os.Stat(filepath.Join("testdata/script", script+".txtar"))
		return err
	}
	files, _ := filepath.Glob("*_test.go")
	more, _ := filepath.Glob("../../e2e/*_test.go")
	for _, file := range append(files, more...) {
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.Contains(code, []byte("\nfunc "+name+"(t *testing.T)")) {
			return nil
		}
	}
	return fmt.Errorf("there is no test %s", name)
}

// A test that is not there is seen.
func TestExamplesOfHelpNameTests(t *testing.T) {
	for text, there := range map[string]bool{
		"TestExamplesOfHelp":         true,
		"TestScripts/lsp, in a pipe": true,
		"TestScripts/nosuch":         false,
		"TestNoSuch, anywhere":       false,
	} {
		if err := testIsThere(text); (err == nil) != there {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// runExample runs one line, and has it end once it has said something if it goes on.
func runExample(ts *testscript.TestScript, line string) error {
	going := false
	for _, part := range goesOn {
		going = going || strings.Contains(line+" ", part+" ") || strings.HasPrefix(line+" ", part)
	}
	env := []string{"HOME=" + ts.Getenv("HOME")}
	for _, name := range []string{"PATH", "TMPDIR", "KUBECONFIG"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	if strings.HasPrefix(line, "starling run ") { // one runs already
		line += " --listen 127.0.0.1:0 --name another"
	}
	if strings.HasPrefix(line, "starling tui") {
		line = "terminal " + line
	}
	cmd := exec.Command("sh", "-c", line)
	if going {
		cmd = exec.Command("sh", "-c", "exec "+line)
	}
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), env
	said, out := make(chan struct{}, 1), &bytes.Buffer{}
	r, w := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			out.Write(buf[:n])
			select {
			case said <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	cmd.Stdout, cmd.Stderr = w, w
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); w.Close() }()
	var err error
	if going {
		select {
		case <-said:
		case <-time.After(time.Minute):
			err = fmt.Errorf("says nothing within a minute")
		}
		ts.Check(cmd.Process.Signal(syscall.SIGINT))
	}
	select {
	case end := <-ended:
		if err == nil {
			err = end
		}
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		err = fmt.Errorf("does not end")
	}
	<-read
	// A plan with changes ends with 2.
	if cmd.ProcessState.ExitCode() == 2 && strings.HasPrefix(line, "starling plan ") {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out.String())
	}
	return nil
}
