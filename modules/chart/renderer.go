package chart

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/message"
)

// Renderer evaluates charts in processes beside this one: a template can take all memory or all time with one call,
// and nothing inside a process stops it then. A process serves one chart after the other; it ends when it has nothing
// to do, and whatever becomes of it, the chart that it was at has failed and nothing else has. It is safe for
// concurrent use. Without one (nil), charts are evaluated in this process, without limits.
//
// A process may take little memory, and a job that needs more is done again by one that may take much: there is one at
// a time, and other such jobs wait for their turn in the order in which they came. So all processes together fit into
// the memory limit of the container beside this one, and no chart can have the kernel end it: nobody need note which
// charts are evaluated when that happens.
type Renderer struct {
	o     RendererOptions
	slots chan struct{} // of jobs that take little memory
	large chan struct{} // of the one job that may take much

	mu   sync.Mutex
	idle []*child
}

// RendererOptions configures a [Renderer].
type RendererOptions struct {
	// Command makes the process that calls [ServeCharts] with its stdin and stdout.
	Command func() *exec.Cmd
	// Most is how many processes there may be beside that of a large job; 0 means 4, or fewer where Go's memory
	// limit is below 512 MiB.
	Most int
	// Memory is how many bytes a chart may take; 0 means 256 MiB, or half of Go's memory limit where that is less,
	// and 32 MiB at least.
	Memory int64
	// Idle is how long one stays that has nothing to do; 0 means 10 seconds.
	Idle time.Duration
}

// NewRenderer starts nothing yet.
func NewRenderer(o RendererOptions) *Renderer {
	limit := debug.SetMemoryLimit(-1) // of this process: what charts take is beside it
	if o.Most == 0 {
		o.Most = int(max(min(limit/(128<<20), 4), 1))
	}
	if o.Memory == 0 {
		o.Memory = max(min(limit/2, maxRenderMemory), leastRenderMemory)
	}
	o.Idle = cmp.Or(o.Idle, 10*time.Second)
	return &Renderer{o: o, slots: make(chan struct{}, o.Most), large: make(chan struct{}, 1)}
}

// errMemory is why a process ended that has taken all memory it may; it is no text for people.
var errMemory = errors.New("out of memory")

// tooMuch is what people read of it.
func (r *Renderer) tooMuch() error {
	advice := "change the chart, or its values"
	if r.o.Memory < maxRenderMemory {
		advice += ", or give the container more memory"
	}
	return fmt.Errorf("it takes more than %d MiB of memory: a template makes too much, or reads too much; %s", r.o.Memory>>20, advice)
}

// do sees to a job. An error is that of the process or of ctx; what is wrong with the chart is in the outcome.
func (r *Renderer) do(ctx context.Context, j job, lookup helm.Lookup) (outcome, error) {
	if r == nil {
		return doHere(ctx, j, lookup)
	}
	out, err := r.doIn(ctx, r.slots, j, lookup)
	if errors.Is(err, errMemory) && r.o.Memory > arena {
		out, err = r.doIn(ctx, r.large, j, lookup)
	}
	if errors.Is(err, errMemory) {
		err = r.tooMuch()
	}
	return out, err
}

// doIn gives a job to a process as soon as one of slots is free.
func (r *Renderer) doIn(ctx context.Context, slots chan struct{}, j job, lookup helm.Lookup) (outcome, error) {
	select {
	case slots <- struct{}{}: // the one that waits longest is next
		defer func() { <-slots }()
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
	large := slots == r.large
	for {
		c, waited, err := r.take()
		if err != nil {
			return outcome{}, err
		}
		stop := context.AfterFunc(ctx, c.kill)
		out, err := c.do(ctx, j, large, lookup)
		stop()
		if err == nil && ctx.Err() != nil { // it is being killed, or has got no answer to a lookup
			err = context.Cause(ctx)
		}
		if err == nil && !large {
			r.put(c)
			return out, nil
		}
		c.kill() // one that has done a large job gives back its memory so
		why := c.wait()
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil:
			return outcome{}, context.Cause(ctx)
		case waited && c.killed():
			// The kernel takes these processes first when memory is used up, and it may
			// have done so before this job: a new one tells.
		default:
			return outcome{}, why
		}
	}
}

// doHere does the job in this process. One that does not end goes on when ctx has ended.
func doHere(ctx context.Context, j job, lookup helm.Lookup) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	done := make(chan outcome, 1)
	go func() { done <- j.do(lookup) }()
	select {
	case out := <-done:
		return out, nil
	case <-ctx.Done():
		return outcome{}, context.Cause(ctx)
	}
}

// take returns a process that has waited for something to do, or a new one.
func (r *Renderer) take() (c *child, waited bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.idle) > 0 {
		c = r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		if c.timer.Stop() {
			return c, true, nil
		}
	}
	c, err = start(r.o.Command(), r.o.Memory)
	return c, false, err
}

// put keeps a process for the next job.
func (r *Renderer) put(c *child) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.timer = time.AfterFunc(r.o.Idle, func() {
		r.mu.Lock()
		r.idle = slices.DeleteFunc(r.idle, func(other *child) bool { return other == c })
		r.mu.Unlock()
		c.in.Close() // it ends with its input
		_ = c.wait()
	})
	r.idle = append(r.idle, c)
}

// child is a process that evaluates charts.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	enc    *gob.Encoder
	dec    *gob.Decoder
	stderr beginning
	timer  *time.Timer // ends it when it has nothing to do
}

// start starts a process in which a chart may take so much memory.
func start(cmd *exec.Cmd, memory int64) (*child, error) {
	c := &child{cmd: cmd}
	cmd.Stderr = &c.stderr
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.enc, c.dec = gob.NewEncoder(c.in), gob.NewDecoder(out)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the process that renders charts does not start: %w", err)
	}
	// Where that fails, so does the job that comes next, which says why.
	_ = c.enc.Encode(toChild{Memory: uint64(memory)})
	return c, nil
}

func (c *child) do(ctx context.Context, j job, large bool, lookup helm.Lookup) (outcome, error) {
	if large {
		if err := c.enc.Encode(toChild{Large: true}); err != nil {
			return outcome{}, err
		}
	}
	if err := c.enc.Encode(toChild{Job: &j}); err != nil {
		return outcome{}, err
	}
	for {
		var m toParent
		if err := c.dec.Decode(&m); err != nil {
			return outcome{}, err
		}
		switch {
		case m.Outcome != nil:
			return *m.Outcome, nil
		case m.Lookup != nil && lookup != nil:
			found := answerTo(*m.Lookup, lookup)
			if err := c.enc.Encode(toChild{Answer: &found}); err != nil {
				return outcome{}, err
			}
		default:
			return outcome{}, errors.New("no message")
		}
	}
}

func (c *child) kill() { _ = c.cmd.Process.Kill() } // it may have ended

// killed says that a signal has ended the process, once it has ended: limits that it looks
// at itself, and faults, have exit codes.
func (c *child) killed() bool { return c.cmd.ProcessState != nil && c.cmd.ProcessState.ExitCode() < 0 }

// wait returns why the process ended while it had a job.
func (c *child) wait() error {
	_ = c.cmd.Wait() // how it ended is in its state
	text := string(c.stderr)
	switch code := c.cmd.ProcessState.ExitCode(); {
	case code == exitTime:
		return fmt.Errorf("a template loops without end, or nearly: it has taken %s of processor time; change the chart, or its values", maxRenderTime)
	case code == exitMemory, strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"):
		return errMemory
	case strings.Contains(text, "stack overflow"), strings.Contains(text, "stack exceeds"):
		return errors.New("a template calls itself without end, or nearly; change the chart, or its values")
	default:
		text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
		if text != "" {
			text = ": " + message.Cut(text, 200)
		}
		why := "this is a bug, please report it"
		if strings.Contains(c.cmd.ProcessState.String(), "killed") {
			why = "the kernel does that when the memory of the container or the machine is used up; give it more, or let the chart take less"
		}
		return fmt.Errorf("the process that renders it ended (%s): %s%s", c.cmd.ProcessState, why, text)
	}
}

// beginning keeps the first bytes of what is written. It is read once the process has ended.
type beginning []byte

// Write keeps p as long as there is room.
func (b *beginning) Write(p []byte) (int, error) {
	if room := 4096 - len(*b); room > 0 {
		*b = append(*b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
