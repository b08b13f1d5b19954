// Command progress runs a go build that takes minutes and says how far it is: on
// a terminal in one line that counts, elsewhere with a line every 30 seconds.
//
//	progress -dir cmd/devcluster -o bin/devcluster -what "the control plane" [build flag…]
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// many packages to compile are worth a word of warning.
const many = 100

func main() {
	dir := flag.String("dir", ".", "`folder` of the package to build")
	output := flag.String("o", "", "`file` to write the program to")
	what := flag.String("what", "", "what is built, in words")
	flag.Parse()
	if *output == "" || *what == "" {
		fmt.Fprintln(os.Stderr, "progress: -o and -what are needed")
		os.Exit(2)
	}
	if err := build(*dir, *output, *what, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "progress: %s: %v\n", *what, err)
		os.Exit(1)
	}
}

func build(dir, output, what string, flags []string) error {
	started := time.Now()
	output, err := filepath.Abs(output) // go build runs in dir
	if err != nil {
		return err
	}
	r := &reporter{out: os.Stderr, started: started, terminal: isTerminal(os.Stderr)}
	stop := r.start()
	stale, err := stalePackages(dir, flags, r)
	if err != nil {
		stop()
		return err
	}
	if len(stale) >= many {
		r.say(fmt.Sprintf("compiling %s: %d packages (the first time: some 4 minutes on 2 cores; later: seconds)", what, len(stale)))
	}
	r.expect(len(stale))
	// -v names each package on stderr when its turn comes.
	cmd := exec.Command("go", append([]string{"build", "-v", "-o", output}, append(flags, ".")...)...)
	cmd.Dir = dir
	err = runLines(cmd, func(line string) {
		if stale[line] {
			r.compiled()
		} else if !r.downloading(line) {
			r.say(line)
		}
	})
	stop()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "built %s: %d packages compiled (%s)\n", what, len(stale), time.Since(started).Round(100*time.Millisecond))
	return nil
}

// stalePackages lists what the build cache does not have yet. It downloads the
// modules that are missing.
func stalePackages(dir string, flags []string, r *reporter) (map[string]bool, error) {
	args := append([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, append(flags, ".")...)
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var list strings.Builder
	cmd.Stdout = &list
	err := runLines(cmd, func(line string) {
		if !r.downloading(line) {
			r.say(line)
		}
	})
	stale := map[string]bool{}
	for name := range strings.FieldsSeq(list.String()) {
		stale[name] = true
	}
	return stale, err
}

// runLines runs cmd and hands each line of its stderr to line.
func runLines(cmd *exec.Cmd, line func(string)) error {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
	}
	_, _ = io.Copy(io.Discard, stderr) // after a line that is too long
	return cmd.Wait()
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// reporter shows how far the build is.
type reporter struct {
	out      io.Writer
	started  time.Time
	terminal bool

	mu                  sync.Mutex
	total, done, loaded int
}

// start shows a line from time to time until the returned function is called.
func (r *reporter) start() (stop func()) {
	every := 30 * time.Second
	if r.terminal {
		every = time.Second
	}
	ticker := time.NewTicker(every)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				r.show()
			case <-end:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(end)
		<-ended
		r.clear()
	}
}

func (r *reporter) expect(total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total = total
}

func (r *reporter) compiled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
}

// downloading takes note of a line like "go: downloading MODULE VERSION".
func (r *reporter) downloading(line string) bool {
	if !strings.HasPrefix(line, "go: downloading ") {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loaded++
	return true
}

func (r *reporter) show() {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := "looking at what to compile"
	switch {
	case r.total > 0 && r.done >= r.total:
		state = "linking"
	case r.total > 0:
		state = fmt.Sprintf("%d of %d packages", r.done, r.total)
	case r.loaded > 0:
		state = fmt.Sprintf("downloading Go modules (%d)", r.loaded)
	}
	line := fmt.Sprintf("  %s, %s", state, time.Since(r.started).Round(time.Second))
	if r.terminal {
		fmt.Fprintf(r.out, "\r\033[K%s", line)
	} else {
		fmt.Fprintln(r.out, line)
	}
}

func (r *reporter) clear() {
	if r.terminal {
		fmt.Fprint(r.out, "\r\033[K")
	}
}

// say prints a line for good, above the one that counts.
func (r *reporter) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	fmt.Fprintln(r.out, line)
}
