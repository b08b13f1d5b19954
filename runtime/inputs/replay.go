package inputs

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// Again is what came of the inputs of a file.
type Again struct {
	// Version is that of the starling that wrote the file.
	Version string
	// Inputs and Actions count what was handled, and what followed.
	Inputs, Actions int
	// Cut says that the last entry is not whole: the process was killed.
	Cut bool
}

// Replay hands the inputs of a file to a new engine, and to one more for each time that the process has led. An error that is no [DifferenceError] says
// why the file, or a module tree in it, cannot be used.
func Replay(ctx context.Context, from io.Reader) (again Again, err error) {
	r := &replay{known: map[[sha256.Size]byte][]byte{}}
	in := bufio.NewReader(io.LimitReader(from, MaxFile))
	for {
		e, err := readEntry(in)
		switch {
		case errors.Is(err, io.EOF) && r.engine != nil:
			return r.again, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && r.engine != nil:
			r.again.Cut = true
			return r.again, nil
		case err != nil:
			return r.again, errBroken
		}
		if err := r.entry(ctx, e); err != nil {
			return r.again, err
		}
	}
}

// replay is a recorder the other way round.
type replay struct {
	engine  *engine.Engine
	options engine.Options
	last    *generation.Generation // see Recorder
	before  *generation.Generation // the one before last
	known   map[[sha256.Size]byte][]byte
	asked   asked
	jitters int // that the engine has asked for
	again   Again
}

func (r *replay) entry(ctx context.Context, e *entry) error {
	if r.engine == nil && e.Head == nil {
		return errBroken
	}
	switch {
	case e.Head != nil:
		return r.head(e.Head)
	case e.Tree != nil:
		g, err := e.Tree.compile(ctx, r.last, r.known)
		r.before, r.last = r.last, g
		return err
	case e.Follow != nil && r.before != nil:
		r.asked = *e.Follow
		out, err := engine.Follow(r.options, r.before, r.last)
		if r.last = out; err != nil {
			r.last = r.before
		}
		return nil
	case e.Input != nil:
		return r.input(e.Input)
	}
	return errBroken
}

func (r *replay) head(h *head) error {
	if h.Format != format {
		return fmt.Errorf("starling %s wrote it in format %d; this one reads format %d", h.Version, h.Format, format)
	}
	if err := (&decoder{}).into(h.Options, reflect.ValueOf(&r.options).Elem()); err != nil {
		return fmt.Errorf("options%w", err)
	}
	r.options.Jitter, r.options.Mark = r.jitter, r.mark
	r.engine, r.again.Version = engine.New(r.options), h.Version
	return nil
}

// jitter returns the number of then.
func (r *replay) jitter() float64 {
	if r.jitters++; r.jitters > len(r.asked.Jitter) {
		return 0
	}
	return r.asked.Jitter[r.jitters-1]
}

// mark refuses what was refused then.
func (r *replay) mark(what, digest string) (func(bool), error) {
	for _, one := range r.asked.Refused {
		if one.What == what && one.Digest == digest {
			return nil, errors.New(one.Why)
		}
	}
	return func(bool) {}, nil
}

func (r *replay) input(then *input) error {
	in, err := (&decoder{generation: r.last}).input(then.Kind, then.Data)
	if err != nil {
		return err
	}
	r.again.Inputs++
	r.asked, r.jitters = then.Asked, 0
	at := time.Unix(0, then.At).UTC()
	var now []action
	for _, a := range r.engine.Handle(at, in) {
		r.last = inForce(a, r.before, r.last)
		shown, err := show(a)
		if err != nil {
			return err
		}
		now = append(now, shown)
	}
	r.again.Actions += len(now)
	text := differs(then.Actions, now)
	if n := len(then.Asked.Jitter); text == "" && n != r.jitters {
		text = fmt.Sprintf("then it asked for %d random numbers, now for %d", n, r.jitters)
	}
	if text != "" {
		return &DifferenceError{Input: r.again.Inputs, Kind: then.Kind, At: at, Text: text}
	}
	return nil
}

// differs says in which action two lists differ first, "" in none.
func differs(then, now []action) string {
	lines := func(all []action) (out []string) {
		for i, a := range all {
			out = append(out, fmt.Sprintf("action %d is %s %s", i+1, a.Kind, a.Text))
		}
		return out
	}
	if slices.Equal(then, now) {
		return ""
	}
	return different(lines(then), lines(now))
}
