package inputs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	modules "github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// quiet is a tree with a module that never changes, and one with a chart and a hook.
var quiet = map[string]string{
	"global/hooks/g.star":  "def g(ctx):\n    pass\nhook(g, on = [startup()])",
	"calm/module.star":     "module(enabled = True)",
	"calm/hooks/a.star":    "def a(ctx):\n    pass\nhook(a, on = [startup()])",
	"web/module.star":      "module(enabled = True)",
	"web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	"web/templates/a.yaml": "{}",
	"web/hooks/a.star":     hooks("ConfigMap"),
}

func hooks(kind string) string {
	return `
def all(ctx):
    pass
def each(ctx):
    pass
hook(all, on = [k8s.watch("v1", "` + kind + `", name = "all"), schedule("*/5 * * * *")])
hook(each, on = [k8s.watch("v1", "ConfigMap", name = "each")], for_each = "each")
`
}

func changed(files map[string]string, path, text string) map[string]string {
	out := map[string]string{path: text}
	for p, old := range files {
		if p != path {
			out[p] = old
		}
	}
	return out
}

// compile makes a generation of files; nothing in it may be broken.
func compile(t testing.TB, files map[string]string, number int, before *generation.Generation) *generation.Generation {
	t.Helper()
	all := fstest.MapFS{}
	for path, text := range files {
		all[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := modules.Read(all, modules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: number, Previous: before,
	})
}

// process is an engine whose inputs are written down, with a driver that answers at once.
type process struct {
	t        testing.TB
	path     string
	recorder *Recorder
	engine   *engine.Engine
	now      time.Time
	random   *rand.Rand
	gen      *generation.Generation
	waiting  []engine.Action
	refused  bool // what is marked
}

func newProcess(t testing.TB) *process {
	t.Helper()
	p := &process{t: t, path: filepath.Join(t.TempDir(), "inputs"), now: time.Now(), random: rand.New(rand.NewPCG(1, 2))}
	p.recorder = Record(Options{Path: p.path, Version: "v1", Log: zerolog.New(io.Discard)})
	p.engine = engine.New(p.recorder.Options(engine.Options{
		Namespace: "ops", Name: "starling", Paused: []string{"calm"}, Grace: time.Minute, Jitter: p.random.Float64,
		Mark: func(string, string) (func(bool), error) {
			if p.refused {
				return nil, errors.New("quarantined")
			}
			return func(bool) {}, nil
		},
	}))
	return p
}

func (p *process) handle(in engine.Input) {
	p.now = p.now.Add(time.Duration(p.random.IntN(1e9)))
	for _, a := range p.recorder.Handle(p.engine, p.now, in) {
		if adopted, is := a.(engine.Adopted); is {
			p.gen = adopted.Generation
		}
		p.waiting = append(p.waiting, a)
	}
}

func (p *process) load(files map[string]string) {
	number := 1
	if p.gen != nil {
		number = p.gen.Number + 1
	}
	next := compile(p.t, files, number, p.gen)
	if p.gen == nil {
		p.gen = next
		p.handle(engine.Start{Generation: next, Kept: map[string]map[string][]byte{"web": {"x": []byte("y")}}})
		return
	}
	p.handle(engine.Reload{Generation: next})
}

// settle answers all that waits, and lets some time pass.
func (p *process) settle() {
	for range 3 {
		for len(p.waiting) > 0 {
			a := p.waiting[0]
			p.waiting = p.waiting[1:]
			if in := p.answer(a); in != nil {
				p.handle(in)
			}
		}
		p.now = p.now.Add(10 * time.Minute)
		p.handle(engine.Tick{})
	}
}

func (p *process) answer(a engine.Action) engine.Input {
	var err error
	if p.random.IntN(3) == 0 {
		err = fmt.Errorf("try %d: %w", p.random.IntN(9), &builtins.FailError{Msg: "no"})
	}
	switch a := a.(type) {
	case engine.StartWatch:
		return engine.WatchSynced{ID: a.ID, Served: true, Objects: []engine.Object{{Namespace: "ops", Name: "one"}}}
	case engine.RunHook:
		done := engine.RunDone{Run: a.Run, Err: err, Took: time.Second}
		if err == nil && a.Hook.Module == "web" {
			done.Effects = effect.Effects{
				Values: []effect.ValueOp{{Op: effect.OpSet, Path: []string{"n"}, Value: int64(p.random.IntN(9))}},
				Memory: effect.Memory{State: map[string]any{"n": 1.0}}, Writes: []effect.Write{{Kind: effect.WriteApply, Object: map[string]any{"kind": "X"}}},
			}
		}
		return done
	case engine.Commit:
		return engine.Committed{Run: a.Run, Err: err}
	case engine.Save:
		return engine.Saved{Op: a.Op, Err: err}
	case engine.Evaluate:
		return engine.Evaluated{Op: a.Op, Err: err}
	case engine.ApplyCRDs:
		return engine.CRDsApplied{Op: a.Op, Err: err}
	case engine.Release:
		return engine.Released{Op: a.Op, Err: err, Changed: true, Revision: 1}
	case engine.Uninstall:
		return engine.Uninstalled{Op: a.Op, Err: err}
	case engine.RemoveSets:
		return engine.SetsRemoved{Op: a.Op, Err: err}
	case engine.Unhold:
		return engine.Unheld{Op: a.Op, Err: err}
	}
	return nil
}

// file is what was written so far.
func (p *process) file() []byte {
	p.t.Helper()
	data, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// live is a process that has lived through all sorts of things.
func live(t testing.TB) *process {
	p := newProcess(t)
	p.load(quiet)
	for _, m := range p.gen.All() {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
	}
	p.handle(engine.Config{State: engine.ConfigPresent, Data: map[string]string{"web": "n: 1"}})
	p.settle()
	p.handle(engine.Requested{ID: 1, Hook: "web/hooks/a.star:all"})
	p.settle()
	p.load(changed(quiet, "web/hooks/a.star", hooks("Secret"))) // without a grant: it is held
	p.settle()
	p.refused = true
	p.handle(engine.Config{State: engine.ConfigPresent, Data: map[string]string{"web": "n: 2"}})
	p.settle()
	p.refused = false
	p.load(changed(quiet, "web/hooks/a.star", hooks("Pod")))
	p.settle()
	p.load(quiet2)
	p.settle()
	return p
}

// quiet2 has no module web.
var quiet2 = map[string]string{"global/hooks/g.star": quiet["global/hooks/g.star"], "calm/module.star": quiet["calm/module.star"], "calm/hooks/a.star": quiet["calm/hooks/a.star"]}

func TestReplayHasTheSameActions(t *testing.T) {
	p := live(t)
	again, err := Replay(t.Context(), bytes.NewReader(p.file()))
	if err != nil {
		t.Fatal(err)
	}
	if again.Version != "v1" || again.Inputs < 50 || again.Actions < 100 || again.Cut {
		t.Errorf("%+v", again)
	}
	info, err := os.Stat(p.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v, %v", info.Mode(), err)
	}
	// Contents that are there already are not written again: there were four trees.
	if n := bytes.Count(p.file(), []byte(quiet["calm/hooks/a.star"])); n != 1 {
		t.Errorf("a file of the tree is there %d times", n)
	}
}

// One input of a file that is changed shows as a difference, and nothing before it.
func TestReplayNamesTheFirstDifference(t *testing.T) {
	for name, change := range map[string]func(*input) bool{
		"a random number": func(in *input) bool {
			if len(in.Asked.Jitter) == 0 {
				return false
			}
			in.Asked.Jitter[0] = 1 - in.Asked.Jitter[0]
			return true
		},
		"one number less": func(in *input) bool {
			some := len(in.Asked.Jitter) > 0
			in.Asked.Jitter = nil
			return some
		},
		"a refusal": func(in *input) bool {
			some := len(in.Asked.Refused) > 0
			in.Asked.Refused = nil
			return some
		},
		"an action": func(in *input) bool {
			if len(in.Actions) < 3 {
				return false
			}
			in.Actions = in.Actions[:2]
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, number, done := bytes.NewReader(live(t).file()), 0, false
			var out []byte
			for {
				e, err := readEntry(r)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if e.Input != nil && !done {
					number++
					done = change(e.Input)
				}
				if out, err = writeEntry(out, e); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Replay(t.Context(), bytes.NewReader(out))
			var differs *DifferenceError
			if !done || !errors.As(err, &differs) || differs.Input != number || !strings.HasPrefix(err.Error(), fmt.Sprintf("input %d (%s, ", number, differs.Kind)) {
				t.Errorf("input %d was changed, %v: %v", number, done, err)
			}
		})
	}
}

// A tree that changes while another process holds the Lease.
func TestReplayFollowsTreesFromBeforeTheStart(t *testing.T) {
	p := newProcess(t)
	first := compile(t, quiet, 1, nil)
	broken := compile(t, changed(quiet, "web/module.star", "module("), 2, first)
	o := p.recorder.Options(engine.Options{Namespace: "ops", Name: "starling"})
	held, err := engine.Follow(o, first, broken)
	p.recorder.Followed(first, broken, held)
	if err != nil || held.Held["web"] == "" {
		t.Fatalf("%+v, %v", held, err)
	}
	none := compile(t, map[string]string{"lib/a.star": "", "x/module.star": "module("}, 3, held)
	after, err := engine.Follow(o, held, none)
	p.recorder.Followed(held, none, after)
	if err == nil {
		held = after
	}
	p.gen = held
	p.handle(engine.Start{Generation: held})
	p.settle()
	p.load(quiet)
	p.settle()
	if _, err := Replay(t.Context(), bytes.NewReader(p.file())); err != nil {
		t.Error(err)
	}
}

func TestReplayOfAFileThatIsCut(t *testing.T) {
	data := live(t).file()
	again, err := Replay(t.Context(), bytes.NewReader(data[:len(data)-3]))
	if err != nil || !again.Cut {
		t.Errorf("%+v, %v", again, err)
	}
	for name, data := range map[string][]byte{"empty": nil, "another file": []byte("hello"), "no head": data[1:]} {
		if _, err := Replay(t.Context(), bytes.NewReader(data)); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecorderEndsWithOneLine(t *testing.T) {
	var log bytes.Buffer
	for name, bad := range map[string]func(p *process){
		"a file that is full": func(p *process) { p.recorder.most = p.recorder.size + 100 },
		"a disk that fails":   func(p *process) { p.recorder.out.Close() },
		"what cannot be written": func(p *process) {
			p.handle(engine.RunDone{Response: builtins.Response{Object: map[string]any{"x": 'x'}}})
		},
		"a file that cannot begin": func(p *process) { p.recorder = Record(Options{Path: p.path, Log: p.recorder.o.Log}) },
	} {
		p := newProcess(t)
		p.recorder.o.Log = zerolog.New(&log)
		p.load(quiet)
		log.Reset()
		bad(p)
		p.settle()
		p.load(changed(quiet, "web/hooks/a.star", hooks("Pod")))
		p.settle()
		if n := strings.Count(log.String(), "--record-inputs: "); n != 1 || !strings.Contains(log.String(), "all else goes on") {
			t.Errorf("%s: %d lines: %s", name, n, log.String())
		}
		if again, err := Replay(t.Context(), bytes.NewReader(p.file())); err != nil || again.Inputs == 0 {
			t.Errorf("%s: what was written before: %+v, %v", name, again, err)
		}
	}
}

func TestNilRecorderWritesNothing(t *testing.T) {
	if r := Record(Options{}); r != nil {
		t.Fatal("there is a recorder without a path")
	}
	var r *Recorder
	e := engine.New(r.Options(engine.Options{Jitter: rand.Float64}))
	now := time.Now()
	gen := compile(t, quiet, 1, nil)
	r.Followed(gen, gen, gen)
	if len(r.Handle(e, now, engine.Start{Generation: gen})) == 0 {
		t.Error("the engine was not asked")
	}
}
