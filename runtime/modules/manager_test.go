package modules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// server is an API server of Module objects, whose watch is never late.
type server struct {
	objects map[string]map[string]any
	writes  []string
	fails   func(w effect.Write) error
	facts   map[string]Facts
	ready   bool
	stays   bool
	events  []string
	looks   []string // at modules
}

func newServer(modules ...string) *server {
	s := &server{objects: map[string]map[string]any{}, facts: map[string]Facts{}, ready: true, fails: func(effect.Write) error { return nil }}
	for _, name := range modules {
		f := web(status.ModuleReady, 1)
		f.Module.Name = name
		s.facts[name] = f
	}
	return s
}

func (s *server) manager(client Writer, log *strings.Builder) *Manager {
	return New(Options{
		Instance: own, Client: client, Define: func(context.Context) error { return nil },
		Objects: func() (map[string]Object, bool) {
			out := map[string]Object{}
			for name, obj := range s.objects {
				kept, _, _ := Filter(obj)
				out[name] = Read(kept)
			}
			return out, true
		},
		Facts: func(context.Context) (map[string]Facts, bool, bool, bool) {
			return s.facts, s.ready, s.stays, true
		},
		Elsewhere: func(string) bool { return false },
		Reconcile: func(module, _ string) { s.looks = append(s.looks, module) },
		Event:     func(about effect.Ref, e effect.Event) { s.events = append(s.events, about.Name+" "+e.Reason) },
		Log:       zerolog.New(log),
	})
}

func (s *server) Write(_ context.Context, _ string, w effect.Write) (map[string]any, error) {
	name := w.Ref.Name
	s.writes = append(s.writes, string(w.Kind)+" "+name)
	if err := s.fails(w); err != nil {
		return nil, err
	}
	obj := s.objects[name]
	switch {
	case w.Kind == effect.WriteCreate && obj == nil:
		obj = w.Object
		child(obj, "metadata")["uid"], child(obj, "metadata")["generation"] = "uid-"+name, int64(1)
		s.objects[name] = obj
	case obj == nil:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "modules"}, name)
	case w.Kind == effect.WriteStatus:
		obj["status"] = w.Object["status"]
	case w.Kind == effect.WriteDelete && w.Unchanged.ResourceVersion != effect.At[string](obj, "metadata", "resourceVersion"):
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "modules"}, name, errors.New("modified"))
	case w.Kind == effect.WriteDelete:
		delete(s.objects, name)
	case w.Kind == effect.WritePatch:
		metadata := child(w.Patch.Body.(map[string]any), "metadata")
		if labels := child(metadata, "labels"); len(labels) > 0 {
			child(obj, "metadata")["labels"] = labels
		}
		if _, is := metadata["annotations"]; is {
			delete(child(obj, "metadata"), "annotations")
		}
	}
	return obj, nil
}

// A thousand modules get their objects bit by bit, fewer of them before all are ready; once all have
// them, and after a restart, nothing is written.
func TestAFewObjectsPerRound(t *testing.T) {
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("m%03d", i))
	}
	s := newServer(names...)
	s.ready = false
	m, now := s.manager(s, &strings.Builder{}), noon
	round := func() int {
		s.writes = nil
		m.round(t.Context(), now)
		now = now.Add(pause)
		return len(s.writes)
	}
	if n := round(); n != 2*mostEarly {
		t.Errorf("before all are ready: %d writes", n)
	}
	s.ready = true
	for _, want := range []int{2 * mostWrites, 2 * mostWrites, 2 * (120 - mostEarly - 2*mostWrites), 0, 0} {
		if n := round(); n != want {
			t.Errorf("%d writes in a round, want %d", n, want)
		}
	}
	if len(s.events) != 120 {
		t.Errorf("%d Events", len(s.events))
	}
	m, s.ready = s.manager(s, &strings.Builder{}), false
	for name, f := range s.facts {
		f.Module.State, f.Module.Release = status.ModuleStarting, &status.Release{Name: "web", Namespace: "apps"}
		s.facts[name] = f
	}
	for range 3 {
		if n := round(); n != 0 {
			t.Errorf("%d writes in an unchanged start: %v", n, s.writes[:2])
		}
	}
}

// Somebody who asks for a look again and again gets one per round, and one after the last.
func TestAFloodOfLooks(t *testing.T) {
	s := newServer("web")
	m := s.manager(s, &strings.Builder{})
	m.round(t.Context(), noon)
	ask := func(n int) {
		child(s.objects["web"], "metadata")["annotations"] = map[string]any{ReconcileAnnotation: fmt.Sprint(n)}
	}
	write := s.fails
	s.fails = func(w effect.Write) error {
		ask(len(s.looks)) // while the annotation is on its way off
		return write(w)
	}
	for i := range 5 {
		for n := range 100 {
			ask(n)
		}
		m.round(t.Context(), noon.Add(time.Duration(i+1)*pause))
	}
	if !slices.Equal(s.looks, []string{"web", "web", "web", "web", "web"}) || child(s.objects["web"], "metadata")["annotations"] != nil {
		t.Errorf("looks at %v, the object is %v", s.looks, s.objects["web"])
	}
}

// A write that fails is tried again later, and later; nobody else waits for it, unless all would fail.
func TestAWriteThatFails(t *testing.T) {
	what := schema.GroupResource{Resource: "modules"}
	for name, tt := range map[string]struct {
		err  error
		want string // the writes of three rounds, a second after each other
	}{
		"one is refused":     {apierrors.NewInvalid(schema.GroupKind{Kind: Kind}, "a", nil), "create a, create b, status b"},
		"one is denied":      {apierrors.NewForbidden(what, "a", errors.New("a policy says no")), "create a"},
		"the server is away": {errors.New("connection refused"), "create a"},
	} {
		s, log := newServer("a", "b"), &strings.Builder{}
		s.fails = func(w effect.Write) error {
			if w.Ref.Name == "a" {
				return tt.err
			}
			return nil
		}
		m := s.manager(s, log)
		m.round(t.Context(), noon)
		m.round(t.Context(), noon.Add(time.Second))
		m.round(t.Context(), noon.Add(1999*time.Millisecond))
		if got := strings.Join(s.writes, ", "); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
		m.round(t.Context(), noon.Add(2*time.Second))
		if got := strings.Join(s.writes, ", "); strings.Count(got, "create a") != 2 || !strings.Contains(got, "status b") || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%s, later: %s, log %s", name, got, log)
		}
	}
}

// life is what happens to the Module object of web: each step is carried out before the next one.
var life = []func(*server){
	func(s *server) { s.facts["web"] = web(status.ModuleReady, 1) },
	func(s *server) { s.facts["web"] = web(status.ModuleReady, 2) },
	func(s *server) { // a user writes its spec, and wants another look
		obj := s.objects["web"]
		child(obj, "metadata")["generation"] = int64(2)
		child(obj, "metadata")["annotations"] = map[string]any{ReconcileAnnotation: "now"}
		obj["spec"] = map[string]any{"paused": true}
		f := web(status.ModulePaused, 2)
		f.Module.Config.Generation, f.Spec = 2, map[string]any{"paused": true}
		s.facts["web"] = f
	},
	func(s *server) { delete(child(s.objects["web"], "metadata"), "labels") },
	func(s *server) { delete(s.objects, "web") },
	func(s *server) { // the user takes it back, and the module leaves the tree
		obj := s.objects["web"]
		delete(obj, "spec")
		delete(s.facts, "web")
		s.facts["shop"] = web(status.ModuleReady, 1)
	},
}

// mortal is a process that is killed at its write number at: before it reaches the server, or after
// that, and before the answer is here.
type mortal struct {
	*server
	n, at       int
	after, dead bool
}

func (m *mortal) Write(ctx context.Context, manager string, w effect.Write) (map[string]any, error) {
	if m.n++; m.n == m.at {
		m.dead = true
	}
	if m.dead && (m.n > m.at || !m.after) {
		return nil, errors.New("killed")
	}
	obj, err := m.server.Write(ctx, manager, w)
	if m.dead {
		err = errors.New("killed")
	}
	return obj, err
}

// live leads a process through the life, and the next one when it is killed. It returns how the
// objects were after each step, but for times, and how many writes it took.
func live(t *testing.T, at int, after bool) (pictures []string, writes int) {
	t.Helper()
	s, now := newServer(), noon
	process := &mortal{server: s, at: at, after: after}
	m := s.manager(process, &strings.Builder{})
	times := regexp.MustCompile(`"(lastTransitionTime|time)":"[^"]*"`)
	for _, step := range life {
		step(s)
		for range 30 {
			m.round(t.Context(), now)
			now = now.Add(pause)
			if process.dead {
				process = &mortal{server: s}
				m = s.manager(process, &strings.Builder{})
			}
		}
		picture, err := json.Marshal(s.objects)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, times.ReplaceAllString(string(picture), "$1"))
	}
	return pictures, len(s.writes)
}

// A process that is killed at any write, before or after it reaches the API server, leaves to the
// next one an object that comes to be as if nobody had been killed.
func TestKilledAtEachWrite(t *testing.T) {
	want, writes := live(t, 0, false)
	if writes < 10 {
		t.Fatalf("a life has %d writes only", writes)
	}
	for at := range writes {
		for _, after := range []bool{false, true} {
			got, _ := live(t, at+1, after)
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("killed at write %d (written %t), after step %d:\n%s\nwant\n%s", at+1, after, i, got[i], want[i])
					break
				}
			}
		}
	}
}

// A user writes the spec of an object just as it is deleted, for its module is gone: the object stays.
func TestAnObjectIsDeletedAsItWasSeen(t *testing.T) {
	s := newServer("web")
	m := s.manager(s, &strings.Builder{})
	m.round(t.Context(), noon)
	delete(s.facts, "web")
	m.round(t.Context(), noon.Add(time.Second))
	s.fails = func(w effect.Write) error {
		if w.Kind == effect.WriteDelete {
			obj := s.objects["web"]
			obj["spec"], child(obj, "metadata")["resourceVersion"] = map[string]any{"enabled": true}, "2"
		}
		return nil
	}
	for i := range 3 {
		m.round(t.Context(), noon.Add(time.Second+goneFor+time.Duration(i)*time.Minute))
	}
	if s.objects["web"] == nil || !slices.Contains(s.writes, "delete web") {
		t.Errorf("there is %v after %v", s.objects["web"], s.writes)
	}
}

// A module whose folder goes has one Event that its release was uninstalled: as its object goes, or as that tells of no
// module, since a user has written into it. One that another instance may take over has none.
func TestAModuleThatIsGoneHasOneEvent(t *testing.T) {
	label := own.Label()
	for name, tt := range map[string]struct {
		change func(o map[string]any)
		want   string
	}{
		"its object goes": {func(map[string]any) {}, "web Installed, web Uninstalled"},
		"it stays":        {func(o map[string]any) { o["spec"] = map[string]any{"enabled": true} }, "web Installed, web Uninstalled, web NoModule"},
		"given back": {func(o map[string]any) {
			o["spec"] = map[string]any{"enabled": true}
			child(o, "metadata")["labels"] = map[string]any{}
		}, "web Installed, web NoModule"},
	} {
		s := newServer("web")
		m := s.manager(s, &strings.Builder{})
		m.round(t.Context(), noon)
		child(s.objects["web"], "metadata")["labels"] = map[string]any{effect.InstanceLabel: label}
		tt.change(s.objects["web"])
		delete(s.facts, "web")
		for i := range 4 {
			at := noon.Add(time.Second + time.Duration(i)*goneFor)
			m.round(t.Context(), at)
			if i == 2 {
				m = s.manager(s, &strings.Builder{})
			}
		}
		if got := strings.Join(s.events, ", "); got != tt.want {
			t.Errorf("%s: Events %s, want %s", name, got, tt.want)
		}
	}
}

func child(m map[string]any, key string) map[string]any { return effect.At[map[string]any](m, key) }
