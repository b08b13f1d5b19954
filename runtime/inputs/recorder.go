package inputs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// Options configures a [Recorder].
type Options struct {
	// Path is the file, which must not be there yet; "": nothing is written down.
	Path string
	// Version is that of this starling.
	Version string
	Log     zerolog.Logger
}

// Recorder writes down the inputs of one engine. It serves the engine's goroutine. An input that it
// cannot write ends it with a line in the log, and nothing else. A nil Recorder writes nothing.
type Recorder struct {
	o     Options
	out   *os.File // nil: it has ended
	size  int
	most  int
	begun bool // the head is written
	// last is the module tree that the file has told of last, or what the engine made of it.
	last  *generation.Generation
	known map[[sha256.Size]byte]bool // contents of files of the last tree
	asked asked                      // since the last entry
	now   time.Time
}

// Record begins a file, which only this user may read; nil without a path.
func Record(o Options) *Recorder {
	if o.Path == "" {
		return nil
	}
	r := &Recorder{o: o, most: MaxFile}
	var err error
	if r.out, err = os.OpenFile(o.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		r.end(err)
		return r
	}
	o.Log.Warn().Str("file", o.Path).Msg("--record-inputs: all that the engine sees is written to a file, Secrets too; delete it when it is of no use any more")
	return r
}

// end gives up.
func (r *Recorder) end(err error) {
	r.o.Log.Error().Str("file", r.o.Path).Msgf("--record-inputs: %v; inputs are not written down any more, all else goes on", err)
	if r.out != nil {
		_ = r.out.Close() // there is an error already
	}
	r.out, r.known, r.last, r.asked = nil, nil, nil, asked{}
}

func (r *Recorder) writes() bool { return r != nil && r.out != nil }

// Next says that the next engine takes the place of the one before: [Recorder.Options] begins it.
func (r *Recorder) Next() {
	if r != nil {
		r.begun, r.now = false, time.Time{}
	}
}

// Options returns the options of an engine whose inputs are written down: what their
// functions return is, too.
func (r *Recorder) Options(o engine.Options) engine.Options {
	if !r.writes() {
		return o
	}
	jitter, mark := o.Jitter, o.Mark
	if !r.begun {
		r.begun = true
		o.Jitter, o.Mark = nil, nil
		options, err := raw(o)
		r.write(&entry{Head: &head{Format: format, Version: r.o.Version, Options: options}}, err)
	}
	if jitter != nil {
		o.Jitter = func() float64 {
			n := jitter()
			if r.writes() {
				r.asked.Jitter = append(r.asked.Jitter, n)
			}
			return n
		}
	}
	if mark != nil {
		o.Mark = func(what, digest string) (func(bool), error) {
			ended, err := mark(what, digest)
			if err != nil && r.writes() {
				r.asked.Refused = append(r.asked.Refused, refusal{what, digest, err.Error()})
			}
			return ended, err
		}
	}
	return o
}

// Handle has an engine handle an input. While it is written down, times are those of the
// wall clock alone, and do not go backwards: of no other clock a time can be written.
func (r *Recorder) Handle(e *engine.Engine, now time.Time, in engine.Input) []engine.Action {
	if !r.writes() {
		return e.Handle(now, in)
	}
	if now = now.Round(0); now.Before(r.now) {
		now = r.now
	}
	r.now = now
	before := r.last
	if g := generationOf(in); g != nil {
		r.tree(g)
	}
	if !r.writes() {
		return e.Handle(now, in)
	}
	data, err := raw(in) // before the engine has it
	out := e.Handle(now, in)
	one := &input{At: now.UnixNano(), Kind: kindOf(in), Data: data}
	for _, a := range out {
		r.last = inForce(a, before, r.last)
		shown, wrong := show(a)
		one.Actions, err = append(one.Actions, shown), cmp.Or(err, wrong)
	}
	one.Asked = r.asked // showing may ask, too
	r.write(&entry{Input: one}, err)
	return out
}

// Followed notes that a generation took the place of another one before the engine began: see
// [engine.Follow]. Of next, follow made out; nil: it was refused.
func (r *Recorder) Followed(before, next, out *generation.Generation) {
	if !r.writes() {
		return
	}
	asked := r.asked
	r.tree(before)
	r.tree(next)
	if !r.writes() {
		return
	}
	if r.last = before; out != nil {
		r.last = out
	}
	r.write(&entry{Follow: &asked}, nil)
}

// inForce is the generation that comes after an action: last, unless that was changed or refused.
func inForce(a engine.Action, before, last *generation.Generation) *generation.Generation {
	switch a := a.(type) {
	case engine.Adopted:
		return a.Generation
	case engine.Refused:
		return before
	}
	return last
}

// tree writes down the module tree of a generation, unless that is what the file is at.
func (r *Recorder) tree(g *generation.Generation) {
	if !r.writes() || g == r.last {
		return
	}
	t, known, err := treeOf(g, r.last, r.known)
	r.write(&entry{Tree: t}, err)
	if r.writes() {
		r.last, r.known = g, known
	}
}

// write appends an entry, unless err says why it cannot be written.
func (r *Recorder) write(e *entry, err error) {
	r.asked = asked{}
	var data []byte
	if err == nil {
		data, err = writeEntry(nil, e)
	}
	if err == nil && r.size+len(data) > r.most {
		err = fmt.Errorf("the file has become as large as it may, %d MiB", r.most>>20)
	}
	if err == nil {
		_, err = r.out.Write(data)
		r.size += len(data)
	}
	if err != nil {
		r.end(err)
	}
}

// generationOf is the generation that an input brings, nil for none.
func generationOf(in engine.Input) *generation.Generation {
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		if g, is := v.Field(i).Interface().(*generation.Generation); is {
			return g
		}
	}
	return nil
}

// show makes a text of an action; of a long one the beginning, and the digest of all.
func show(a engine.Action) (action, error) {
	out := action{Kind: kindOf(a)}
	data, err := raw(a)
	if err != nil {
		return out, err
	}
	text := codec.Text(data)
	if len(text) > maxText {
		text = fmt.Sprintf("%s… sha256:%x", bytes.ToValidUTF8([]byte(text[:maxText]), nil), sha256.Sum256(data))
	}
	out.Text = text
	return out, nil
}
