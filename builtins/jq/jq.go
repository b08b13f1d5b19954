// Package jq runs jq programs: jq(value, program), k8s.watch(filter = "…") and k8s.patch(jq = "…").
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/itchyny/gojq"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

const (
	// maxProgram bounds the text of a program.
	maxProgram = 16 << 10
	// maxPrograms is how many compiled programs are kept: those of all hooks, and
	// room for some that are put together at run time.
	maxPrograms = 256
	// maxSteps and maxTime bound one call. A step is one instruction of jq's machine; some 20 million take a second.
	maxSteps = 4_000_000
	maxTime  = 10 * time.Second
)

func Specs() []spec.Spec {
	programs := &cache{known: map[string]*gojq.Code{}}
	return []spec.Spec{
		spec.Pure("jq", programs.call, spec.Required("value", spec.Any),
			spec.Required("program", spec.String)),
	}
}

// cache keeps compiled programs. They may be run in parallel.
type cache struct {
	mu    sync.Mutex
	known map[string]*gojq.Code
}

func (p *cache) compile(text string) (*gojq.Code, error) {
	p.mu.Lock()
	code := p.known[text]
	p.mu.Unlock()
	if code != nil {
		return code, nil
	}
	code, err := compile(text)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxPrograms {
		clear(p.known)
	}
	p.known[text] = code
	return code, nil
}

func (p *cache) call(c *spec.Call) (starlark.Value, error) {
	code, err := p.compile(c.Str("program"))
	if err != nil {
		return nil, fmt.Errorf("program: %w", err)
	}
	outputs, err := run(c.Ctx, c.Room, code, c.Arg("value"), math.MaxInt)
	if err != nil {
		return nil, err
	}
	return starlark.NewList(outputs), nil
}

// Check says why a text is no jq program that filters and jq() take.
func Check(text string) error {
	_, err := compile(text)
	return err
}

// Filter returns the function that a jq program is as the filter of a watch: its first output, None when there is none.
// scope says what a thread reaches.
func Filter(text, pos string, scope func(*starlark.Thread) spec.Scope) (starlark.Callable, error) {
	code, err := compile(text)
	if err != nil {
		return nil, err
	}
	return starlark.NewBuiltin("filter", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		s := scope(t)
		outputs, err := run(s.Ctx, s.Room, code, args[0], 1)
		if err != nil {
			return nil, fmt.Errorf("%s: filter: %w", pos, err)
		}
		if len(outputs) == 0 {
			return starlark.None, nil
		}
		return outputs[0], nil
	}), nil
}

// run returns the first outputs of a program, as fresh values. room is asked with 0
// before each step: whether the program may go on.
func run(parent context.Context, room func(bytes int) error, code *gojq.Code, value starlark.Value, most int) ([]starlark.Value, error) {
	in, err := object.ToTree(value)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	ctx, stop := context.WithCancel(parent)
	defer stop()
	limited := &jqContext{Context: ctx, room: room}
	go limited.clock(stop) // until the program ends
	results := code.RunWithContext(limited, object.Change(in, toJQ))
	out := []starlark.Value{}
	left := maxValue
	for len(out) < most {
		v, ok := results.Next()
		if !ok {
			break
		}
		if err, failed := v.(error); failed {
			if cause := limited.cause(parent); cause != nil {
				return nil, cause
			}
			return nil, errorOf(err)
		}
		if err := weigh(v, &left, 0); err != nil {
			return nil, fmt.Errorf("the result is %w", err)
		}
		fresh, err := object.Copy(object.FromPlain(object.Change(object.CopyPlain(v), fromJQ)))
		if err != nil {
			return nil, err
		}
		out = append(out, fresh)
	}
	return out, nil
}

// jqContext counts steps: gojq asks it before each one.
type jqContext struct {
	context.Context
	steps int
	room  func(bytes int) error // asked with 0: whether the run may go on
	full  error                 // what it said
	// asking is the step at which room is asked; 0 while it is not.
	asking atomic.Int64
}

// tickTime is how often it is looked whether a program works or waits.
const tickTime = maxTime / 100

// clock calls stop once the program has worked for maxTime. To wait in room, for others, is no work.
func (c *jqContext) clock(stop func()) {
	tick := time.NewTicker(tickTime)
	defer tick.Stop()
	before := int64(0)
	for worked := time.Duration(0); worked < maxTime; {
		select {
		case <-c.Context.Done():
			return
		case <-tick.C:
		}
		now := c.asking.Load()
		if now == 0 || now != before {
			worked += tickTime
		}
		before = now
	}
	stop()
}

// Done is called once a step.
func (c *jqContext) Done() <-chan struct{} {
	if c.steps++; c.steps > maxSteps {
		return ended
	}
	if c.full == nil {
		c.asking.Store(int64(c.steps))
		c.full = c.room(0)
		c.asking.Store(0)
	}
	if c.full != nil {
		return ended
	}
	return c.Context.Done()
}

// Err says why Done was closed.
func (c *jqContext) Err() error {
	if c.steps > maxSteps || c.full != nil {
		return context.Canceled
	}
	return c.Context.Err()
}

// cause says which limit has ended the program, nil when none has.
func (c *jqContext) cause(parent context.Context) error {
	switch {
	case c.full != nil:
		return c.full
	case c.steps > maxSteps:
		return &spec.LimitError{Limit: "steps", Detail: fmt.Sprintf("a jq program made more than %d steps", maxSteps)}
	case parent.Err() != nil:
		return context.Cause(parent)
	case c.Context.Err() != nil:
		return &spec.LimitError{Limit: "time", Detail: fmt.Sprintf("a jq program took longer than %s", maxTime)}
	}
	return nil
}

// ended is closed.
var ended = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// errorOf makes an error of a program one line without the values that it met:
// they may be secret. An error that the program itself raises stays as it is.
func errorOf(err error) error {
	if _, ok := errors.AsType[gojq.ValueError](err); ok {
		return errors.New(message.Line(err.Error()))
	}
	text := err.Error()
	if i := strings.IndexAny(text, "(\"{["); i >= 0 {
		text = strings.TrimRight(text[:i], " :")
	}
	if !strings.Contains(text, " ") { // the name of a function alone
		text += " cannot be applied to what it is given"
	}
	return errors.New(text)
}

// toJQ gives an integer the type of gojq.
func toJQ(v any) any {
	if v, is := v.(int64); is {
		if v < math.MinInt || v > math.MaxInt {
			return big.NewInt(v)
		}
		return int(v)
	}
	return v
}

// fromJQ gives a number the type that Starlark knows.
func fromJQ(v any) any {
	number, is := v.(json.Number)
	if !is {
		return v
	}
	if i, ok := new(big.Int).SetString(number.String(), 10); ok {
		return i
	}
	f, _ := number.Float64() // out of range: infinite, as in jq
	return f
}
