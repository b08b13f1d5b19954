//go:build e2e

package pages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/starling-operator/starling/e2e/cluster"
)

const (
	// soon is how long a command may take until it does what its page says, on a slow machine at work.
	soon = 4 * time.Minute
	// going is how long one that does not end by itself is watched.
	going = 3 * time.Second
)

// walk is a person with a page, a shell and a cluster: commands are run as they stand in the page, one after the other.
type walk struct {
	t   *testing.T
	own *cluster.Cluster
	// dir is where the person is: a copy of what pages name.
	dir string
	env []string
	// other has texts of pages, each followed by the one that stands for it here.
	other      []string
	background []background
}

// background is a command that goes on while others run.
type background struct {
	cmd   *exec.Cmd
	out   *bytes.Buffer
	ended chan error
}

// step is the part that a page leaves to its reader at a command, which begins with the key.
type step struct {
	before, after func()
	// says is within the text that the command prints, at last.
	says string
	// refused: the command fails, and says why.
	refused bool
	// follows: the command goes on until Ctrl-C.
	follows bool
}

// begin makes a control plane, and a folder with the examples, deploy/ and a tree `addons`.
func begin(t *testing.T) *walk {
	t.Helper()
	t.Parallel()
	own, err := cluster.Start() // the operator's namespace has its usual name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir, err := os.MkdirTemp("", "p") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &walk{t: t, own: own, dir: dir}
	for to, from := range map[string]string{"deploy": "deploy", "examples": "examples", "addons": "examples/quickstart"} {
		w.must(os.CopyFS(filepath.Join(dir, to), os.DirFS("../../"+from)))
	}
	w.write(map[string]string{
		"addons/web/module.star": "module(enabled = True, labels = {\"tier\": \"edge\"})\n",
		"addons/web/hooks/nodes.star": "def discover(ctx):\n    values.set(\"nodes\", len(ctx.snapshots[\"nodes\"]))\n\n" +
			"hook(discover, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\", filter = lambda n: {\"name\": n.metadata.name})])\n",
		"new-config.yaml": "hello: {greeting: Hi}\n",
		"config.yaml":     "hello: {greeting: Hi}\n",
		"node.yaml":       "{apiVersion: v1, kind: Node, metadata: {name: b}}\n",
		"nodes.yaml":      "{apiVersion: v1, kind: Node, metadata: {name: b}}\n",
	})
	bin := filepath.Join(dir, "bin")
	w.must(os.Mkdir(bin, 0o755))
	for _, name := range []string{"starling", "devcluster", "clients/kubectl", "clients/helm", "clients/jq"} {
		path, err := filepath.Abs(filepath.Join("../../bin", name))
		w.must(err)
		w.must(os.Symlink(path, filepath.Join(bin, filepath.Base(name))))
	}
	config, err := clientcmd.LoadFromFile(own.Kubeconfig)
	w.must(err)
	for _, name := range []string{"production", "prod"} {
		config.Contexts[name] = config.Contexts[config.CurrentContext]
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	w.must(clientcmd.WriteToFile(*config, kubeconfig))
	goCache, err := exec.Command("go", "env", "GOCACHE").Output()
	w.must(err)
	w.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "KUBECONFIG=" + kubeconfig,
		"GOCACHE=" + strings.TrimSpace(string(goCache)), "TOKEN=secret", "TERM=xterm"}
	w.other = []string{"bin/starling", "starling", "bin/devcluster", "devcluster", "/usr/local/bin/", bin + "/", "/tmp/kc", filepath.Join(dir, "kc")}
	t.Cleanup(func() { w.endBackground(0) })
	return w
}

func (w *walk) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write makes files in the folder.
func (w *walk) write(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.dir, name)
		w.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
}

// page runs the commands of one page that are for this test, and returns how many there are.
func (w *walk) page(page, test string, steps map[string]step) (n int) {
	w.t.Helper()
	commands, err := Commands("../..")
	w.must(err)
	used := map[string]bool{}
	for _, c := range commands {
		if c.Page != page || c.RunBy != test {
			continue
		}
		n++
		key := ""
		for of := range steps {
			if strings.HasPrefix(c.Text, of) && !used[of] && len(of) > len(key) {
				key = of
			}
		}
		s := steps[key]
		used[key] = true
		if s.before != nil {
			s.before()
		}
		began := time.Now()
		w.run(page, c.Text, s)
		w.t.Logf("%s: after %s: %s", page, time.Since(began).Round(time.Millisecond), c.Text)
		if s.after != nil {
			s.after()
		}
	}
	if n == 0 {
		w.t.Errorf("%s has no commands for %s", page, test)
	}
	for key := range steps {
		if !used[key] {
			w.t.Errorf("%s has no command %q", page, key)
		}
	}
	return n
}

// pages runs the commands of all pages that are for this test, page by page: the starling of one, which the
// command answers shows at its end, is away at the next.
func (w *walk) pages(test, answers string, steps map[string]map[string]step) {
	w.t.Helper()
	commands, err := Commands("../..")
	w.must(err)
	last, before := "", len(w.background)
	for _, c := range commands {
		if c.RunBy != test || c.Page == last {
			continue
		}
		last = c.Page
		w.page(c.Page, test, steps[c.Page])
		delete(steps, c.Page)
		if len(w.background) > before {
			w.also(answers, "")
			w.endBackground(before)
			w.also("starling detach --namespace starling-system; kubectl -n starling-system delete configmap starling --ignore-not-found", "")
		}
	}
	if len(steps) > 0 {
		w.t.Errorf("nothing is run of %v", steps)
	}
}

// run runs one command until it does what the page says: a person looks again, too.
func (w *walk) run(page, command string, s step) {
	w.t.Helper()
	text := strings.NewReplacer(w.other...).Replace(command)
	switch {
	case s.follows || strings.HasPrefix(text, "starling tui"):
		if out, ended := w.goesOn(text); ended != nil {
			w.t.Errorf("%s: %s: %v\n%s", page, command, ended, out)
		}
		return
	case strings.HasPrefix(text, "starling run ") || strings.HasPrefix(text, "starling dev ") || strings.HasPrefix(text, "devcluster "):
		w.inBackground(text)
		return
	}
	first := ""
	cluster.Eventually(w.t, soon, page+": "+command, func() error {
		out, err := w.sh(text)
		switch {
		case s.refused && err == nil:
			return fmt.Errorf("it is not refused, and prints %s", out)
		case !s.refused && err != nil || !strings.Contains(out, s.says):
			now := fmt.Sprintf("%v, and it prints %s; want %q", err, out, s.says)
			first = cmp.Or(first, now) // a command that is repeated may fail otherwise
			return fmt.Errorf("%s; at first: %s", now, first)
		}
		return nil
	})
}

// command is one of a shell. Others may run a starling on this machine.
func (w *walk) command(ctx context.Context, text string) *exec.Cmd {
	text = strings.Replace(text, "starling run ", "starling run --listen 127.0.0.1:0 ", 1)
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir, cmd.Env = w.dir, w.env
	cmd.WaitDelay = soon // it ends a hang alone: on a busy machine the last lines are read late
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// sh runs a command to its end.
func (w *walk) sh(text string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := w.command(ctx, text)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 2 && strings.Contains(text, "starling plan") { // a plan with changes
		err = nil
	}
	return string(out), err
}

// goesOn runs a command on a terminal for a while. It is an error if it ends before.
func (w *walk) goesOn(text string) (string, error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	cmd := w.command(ctx, text)
	cmd.SysProcAttr = nil // the terminal is its session
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(&out, terminal)
		ended <- cmd.Wait()
	}()
	select {
	case err := <-ended:
		return out.String(), fmt.Errorf("it has ended: %v", err)
	case <-time.After(going):
		cancel()
		<-ended
		return out.String(), nil
	}
}

// inBackground starts a command that goes on while others run.
func (w *walk) inBackground(text string) {
	w.t.Helper()
	b := background{cmd: w.command(context.Background(), "exec "+text), out: &bytes.Buffer{}, ended: make(chan error, 1)}
	b.cmd.Stdout, b.cmd.Stderr = b.out, b.out
	w.must(b.cmd.Start())
	go func() { b.ended <- b.cmd.Wait() }()
	w.background = append(w.background, b)
}

// endBackground ends what runs in the background since, as Ctrl-C does.
func (w *walk) endBackground(from int) {
	w.t.Helper()
	for _, b := range w.background[from:] {
		select {
		case err := <-b.ended:
			w.t.Errorf("%s has ended by itself: %v\n%s", b.cmd, err, b.out)
			continue
		default:
		}
		w.must(b.cmd.Process.Signal(os.Interrupt))
		if err := <-b.ended; err != nil || w.t.Failed() {
			w.t.Logf("%s: %v\n%s", b.cmd, err, b.out)
		}
	}
	w.background = w.background[:from]
}
