package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// runningInstance is a starling that runs on a small API server, in its own process.
type runningInstance struct {
	t      *testing.T
	cmd    *exec.Cmd
	env    []string
	tree   string
	client *admin.Client
}

// runInstance runs a tree of one module, whose hook keeps a secret.
func runInstance(t *testing.T) *runningInstance {
	t.Helper()
	api := apitest.New(t)
	for _, name := range []string{"starling-system", "web"} {
		api.Put(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	api.Put(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login", "namespace": "web"},
		"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte("hunter2hunter2"))},
	})
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: api.Config().Host}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, filepath.Join(dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	r := &runningInstance{t: t, tree: filepath.Join(dir, "tree"), env: []string{
		"TMPDIR=" + dir, "HOME=" + dir, "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), "TERM=xterm-256color", "NO_COLOR=",
	}}
	for path, text := range map[string]string{
		"web/module.star":  `module(enabled = True, namespace = "web", grants = [grant("v1", "Secret", verbs = ["get"])])` + "\n",
		"web/hooks/a.star": "def learn(ctx):\n    values.set(\"token\", k8s.secret(\"login\", \"token\"))\n\nhook(learn, on = [startup()])\n",
	} {
		path = filepath.Join(r.tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, "state")
	r.start((&instance.Instance{StateDir: state}).Socket(), "run", "--modules", r.tree, "--module-objects=false", "--listen", "127.0.0.1:0", "--state-dir", state)
	r.until(func(st status.Status) bool { return len(st.Modules) == 1 && st.Modules[0].State == status.ModuleReady })
	return r
}

// start starts the process, which answers at that socket.
func (r *runningInstance) start(socket string, args ...string) {
	t := r.t
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	r.cmd = &exec.Cmd{Path: self, Args: append([]string{"starling"}, args...), Env: append(os.Environ(), r.env...), Stdout: &said, Stderr: &said}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.client = admin.NewClient(admin.ClientOptions{Socket: socket})
	ended := make(chan struct{})
	go func() { _ = r.cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
}

// until waits for a state.
func (r *runningInstance) until(is func(status.Status) bool) {
	r.t.Helper()
	var st status.Status
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if st, err = r.client.Status(r.t.Context()); err == nil && is(st) {
			return
		}
	}
	r.t.Fatalf("the instance does not come so far: %v, %+v", err, st)
}

func (r *runningInstance) args() []string {
	return []string{"tui", r.tree, "--state-dir", filepath.Join(filepath.Dir(r.tree), "state")}
}

// hasRun says how often its hook has run.
func hasRun(n int) func(status.Status) bool {
	return func(st status.Status) bool { return len(st.Hooks) == 1 && st.Hooks[0].Runs >= n }
}

// redrawn waits for words after the whole screen was drawn anew: else parts of it stay from before.
func (term *terminal) redrawn(words ...string) {
	term.t.Helper()
	for _, word := range words {
		term.send("\x0c")
		term.wait(word)
	}
}

// The screen of an instance that runs, at a terminal: the table, why, the log, a run, a plan; and then
// the instance ends.
func TestTheScreenAtATerminal(t *testing.T) {
	r := runInstance(t)
	term, cmd := atTerminal(t, r.args(), &pty.Winsize{Rows: 40, Cols: 120}, r.env...)
	term.wait("starling-system/starling")
	term.redrawn("MODULE", "web", "ready")
	term.send("\r")
	term.redrawn("Values:", "token", "Hooks:", "a.star:learn", "Runs:", "startup")
	if strings.Contains(term.seen, "hunter2") {
		t.Error("a secret is on the screen")
	}
	term.send("r")
	term.redrawn("y/n")
	term.send("y")
	term.redrawn("will")
	r.until(hasRun(2))
	term.send("q\r")
	term.redrawn("somebody asked for it")
	term.send("l")
	term.redrawn("somebody")
	term.send("p")
	term.redrawn("No changes", "changes")
	term.send("q/wbe\r")
	term.redrawn("matches")
	term.send("/\x15\r?")
	term.redrawn("Ctrl-C")
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	term.redrawn("answering")
	term.send("qq")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// The screen of a starling dev: it follows saves, a run moves the clock, and a plan is at the other terminal.
func TestTheScreenOfDev(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	state := filepath.Join(dir, "state")
	r := &runningInstance{t: t, tree: filepath.Join(dir, "tree"), env: []string{"TMPDIR=" + dir, "HOME=" + dir, "KUBECONFIG=/nonexistent", "TERM=xterm-256color", "NO_COLOR="}}
	save := func(text string) {
		t.Helper()
		hook := filepath.Join(r.tree, "web/hooks/a.star")
		if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(hook, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("def learn(ctx):\n    fail(\"not so\")\n\nhook(learn, on = [startup()])\n")
	r.start((&instance.Instance{StateDir: state, Dev: true}).Socket(), "dev", r.tree, "--state-dir", state)
	r.until(func(st status.Status) bool { return hasRun(1)(st) && st.Simulated && st.Hooks[0].NextTry == nil })
	term, cmd := atTerminal(t, []string{"tui", "--dev", "--state-dir", state}, &pty.Winsize{Rows: 40, Cols: 120}, r.env...)
	term.wait("starling dev starling-system/starling")
	term.redrawn("web", "failed", "not so")
	term.send("r")
	term.redrawn("y/n")
	term.send("y")
	r.until(hasRun(2)) // it was tried again, though the clock stood still
	term.send("\r")
	term.redrawn("Values:", "Runs:", "keeps no records", "Log:", "not so")
	term.send("p")
	term.redrawn("plans by itself")
	save("def learn(ctx):\n    values.set(\"learnt\", True)\n\nhook(learn, on = [startup()])\n")
	term.send("q")
	term.redrawn("ready")
	term.send("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the end: %v", err)
	}
}

// Under tmux, as people see it: each line fits on a screen of 80 columns and on one of 40.
func TestTheScreenUnderTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed here: apt-get install tmux; TestTheScreenAtATerminal needs none")
	}
	r := runInstance(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(r.tree)
	if err := os.Symlink(self, filepath.Join(dir, "starling")); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-S", filepath.Join(dir, "tmux"), "-f", os.DevNull}, args...)...)
		cmd.Env = append(os.Environ(), r.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	do(append([]string{"new-session", "-d", "-x", "80", "-y", "24", filepath.Join(dir, "starling")}, r.args()...)...)
	t.Cleanup(func() {
		_ = exec.Command(tmux, "-S", filepath.Join(dir, "tmux"), "kill-server").Run() // it may have ended
	})
	columns := 80
	shows := func(words ...string) {
		t.Helper()
		var screen string
	look:
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			screen = do("capture-pane", "-p")
			for _, word := range words {
				if !strings.Contains(screen, word) {
					continue look
				}
			}
			for line := range strings.Lines(screen) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > columns {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			return
		}
		t.Fatalf("no %q on the screen\n%s", words, screen)
	}
	shows("1 module - starling starling-system/starling", "MODULE  STATE  QUEUE  LAST RUN  DRIFT  WHY", ">web     ready")
	do("send-keys", "Enter")
	shows("why of web", "State:        ready", "Values:")
	do("send-keys", "r")
	shows("run the hooks of web now? y/n")
	do("send-keys", "y")
	shows("web: web/hooks/a.star:learn will run")
	r.until(hasRun(2))
	do("send-keys", "l")
	shows("log of web", "somebody has asked for a run")
	do("send-keys", "Escape")
	shows("MODULE")
	do("resize-window", "-x", "40", "-y", "12")
	columns = 40
	shows("MODULE  STATE  ", ">web     ready", "? keys  enter why  l log  r run  p plan…")
	do("send-keys", "p")
	shows("No changes")
	do("send-keys", "q", "q")
	for end := time.Now().Add(time.Minute); exec.Command(tmux, "-S", filepath.Join(dir, "tmux"), "has-session").Run() == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("q does not end it")
		}
	}
}

// Without a terminal there is one line, which says what there is instead.
func TestNoScreenWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	root := newRootCommand()
	root.SetArgs([]string{"tui"})
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.Execute()
	if want := "the screen needs a terminal, which this is not; elsewhere see: starling get modules -w"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
