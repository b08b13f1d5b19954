package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is starling at a terminal.
type terminal struct {
	t    *testing.T
	file *os.File
	text chan string
	seen string // and not waited for yet
}

func replAtTerminal(t *testing.T, env ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	return atTerminal(t, []string{"repl"}, &pty.Winsize{Rows: 40, Cols: 120}, env...)
}

// atTerminal runs starling at a terminal.
func atTerminal(t *testing.T, args []string, size *pty.Winsize, env ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary is starling when it is called so, see TestMain.
	cmd := &exec.Cmd{Path: self, Args: append([]string{"starling"}, args...), Env: append(os.Environ(), env...)}
	file, err := pty.StartWithSize(cmd, size)
	if err != nil {
		t.Skip("no terminal here: ", err)
	}
	t.Cleanup(func() { file.Close() })
	term := &terminal{t: t, file: file, text: make(chan string, 1000)}
	go func() {
		defer close(term.text)
		buf := make([]byte, 4096)
		for {
			n, err := file.Read(buf)
			if err != nil {
				return
			}
			term.text <- string(buf[:n])
		}
	}()
	return term, cmd
}

// wait waits until the terminal shows a text.
func (term *terminal) wait(text string) {
	term.t.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(term.seen, text) {
		select {
		case more, ok := <-term.text:
			if !ok {
				term.t.Fatalf("the end came before %q; the terminal shows\n%q", text, term.seen)
			}
			term.seen += more
		case <-late:
			term.t.Fatalf("no %q; the terminal shows\n%q", text, term.seen)
		}
	}
	_, term.seen, _ = strings.Cut(term.seen, text)
}

func (term *terminal) send(keys string) {
	term.t.Helper()
	if _, err := term.file.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// At a terminal: prompts, blocks, Tab, Ctrl-C for a line and Ctrl-D for the end; and a
// history that only its owner can read.
func TestReplAtATerminal(t *testing.T) {
	state := t.TempDir()
	for name, kind := range map[string]string{"a terminal": "xterm", "one that can do nothing": "dumb"} {
		t.Run(name, func(t *testing.T) {
			term, cmd := replAtTerminal(t, "TERM="+kind, "XDG_STATE_HOME="+state, "HOME="+state)
			term.wait("Ctrl-D ends.")
			term.wait("starling> ")
			term.send("40 + 2\r")
			term.wait("42\r\n")
			term.wait("starling> ")
			for _, line := range []string{"def loop():", "    for i in range(1000000): sorted(range(10000))"} {
				term.send(line + "\r")
				term.wait(line[len(line)-5:])
			}
			term.send("\r")
			term.wait("starling> ")
			term.send("print(\"be\" + \"gins\"); loop()\r")
			term.wait("begins\r\n")
			term.send("\x03")
			term.wait("stopped: interrupt")
			term.wait("starling> ")
			if kind == "xterm" {
				term.send("semv\t.comp\t(\"1.0.0\", \"2.0.0\")\r")
				term.wait("-1\r\n")
				term.wait("starling> ")
			}
			term.send("\x04")
			if err := cmd.Wait(); err != nil {
				t.Errorf("the end: %v", err)
			}
		})
	}
	info, err := os.Stat(filepath.Join(state, "starling", "repl_history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
}

// Ctrl-C ends a session that has not begun, for a hook of its tree, or an API server, takes long.
func TestReplIsEndedAsItBegins(t *testing.T) {
	tree := t.TempDir()
	hook := "def slow(ctx):\n    for i in range(1000000): sorted(range(10000))\n\nhook(slow, on = [startup()])\n"
	for file, text := range map[string]string{"module.star": "module(enabled = True)\n", "hooks/slow.star": hook} {
		file = filepath.Join(tree, "web", file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	term, cmd := atTerminal(t, []string{"repl", tree}, &pty.Winsize{Rows: 40, Cols: 120}, "TERM=dumb")
	term.wait("Ctrl-D ends.")
	term.send("\x03")
	term.wait("error: interrupted")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the end: %v", err)
	}
}
