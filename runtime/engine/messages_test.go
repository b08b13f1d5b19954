package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

func wantSaid(t *testing.T, w *world, want ...string) {
	t.Helper()
	if !slices.Equal(w.said, want) {
		t.Errorf("said %q, want %q", w.said, want)
	}
	w.said = nil
}

// Nobody hears of what was not written.
func TestMessagesAreSentOnceTheRunIsCommitted(t *testing.T) {
	receive := builtins.Binding{Name: "receive", Receive: &builtins.ReceiveBinding{Path: "/x"}}
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"), receive)))
	w.hooks["web/a"] = func(r RunHook) (effect.Effects, error) {
		return effect.Effects{
			Writes:   []effect.Write{{Kind: effect.WriteApply}},
			Messages: []effect.Message{{Request: effect.Request{URL: "https://chat.example"}}},
		}, nil
	}
	w.commitErr = errors.New("0 of 1 written")
	w.start()
	wantSaid(t, w)
	w.commitErr = nil
	w.advance(time.Second)
	wantSaid(t, w, "web/a sends https://chat.example")

	// A request is answered after its commit, and its messages are on their way then.
	w.in(Requested{ID: 1, Hook: "web/a", Request: &builtins.Request{Binding: "receive"}})
	wantSaid(t, w, "web/a sends https://chat.example", "request 1: <nil>")
	w.commitErr = errors.New("0 of 1 written")
	w.in(Requested{ID: 2, Hook: "web/a", Request: &builtins.Request{Binding: "receive"}})
	wantSaid(t, w, "request 2: 0 of 1 written")
}

// saying has a hook say messages, "url" or "url key", in its next runs.
func saying(w *world, hook string, messages ...string) {
	w.hooks[hook] = func(RunHook) (eff effect.Effects, err error) {
		for _, text := range messages {
			url, key, _ := strings.Cut(text, " ")
			eff.Messages = append(eff.Messages, effect.Message{Key: key, Request: effect.Request{URL: url}})
		}
		return eff, nil
	}
}

// keptMessages is how many messages are kept of a module.
func (w *world) keptMessages(module string) (n int) {
	for key := range w.kept[module] {
		if strings.HasPrefix(key, messageKey) {
			n++
		}
	}
	return n
}

// The next process sends messages that have not arrived, of a key the last one alone, and no others.
func TestMessagesAreKeptUntilTheyArrive(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes")), hk("b", onStartup(0))), mod("other", isOn(), hk("c", onStartup(0))))
	w.away = true
	saying(w, "web/a", "https://1", "https://1", "https://old k", "https://2 k", "https://3 other")
	w.start()
	wantSaid(t, w, "web/a sends https://1", "web/a sends https://1", "web/a sends https://old", "web/a sends https://2", "web/a sends https://3")
	saying(w, "web/a", "https://4 k")
	w.changed("web/a#nodes")
	wantSaid(t, w, "web/a sends https://4")
	if n := w.keptMessages("web"); n != 4 {
		t.Errorf("%d messages are kept", n)
	}

	saying(w, "web/a")
	for _, away := range []bool{true, false} {
		w.away = away
		w.start()
		slices.Sort(w.said)
		wantSaid(t, w, "web/a sends https://1", "web/a sends https://1", "web/a sends https://3", "web/a sends https://4")
	}
	if n := w.keptMessages("web"); n != 0 {
		t.Errorf("%d messages are kept that have arrived", n)
	}
	w.start()
	wantSaid(t, w)

	// A message that is not kept is not sent: the run is repeated.
	w.saveErr = errors.New("no etcd")
	saying(w, "web/a", "https://5")
	w.changed("web/a#nodes")
	wantSaid(t, w)
	w.saveErr = nil
	w.advance(time.Minute)
	wantSaid(t, w, "web/a sends https://5")
}

// A hook that is gone has said what it has said, and so has a module; a process that stands by says nothing.
func TestMessagesOutliveTheirHook(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0)), hk("b", onStartup(0))), mod("other", isOn()))
	w.away = true
	saying(w, "web/a", "https://1")
	w.start()
	wantSaid(t, w, "web/a sends https://1")
	w.gen.Modules["web"].Hooks = w.gen.Modules["web"].Hooks[1:]
	w.start()
	wantSaid(t, w, "web/a sends https://1")
	delete(w.gen.Modules, "web")
	w.gen.Names = []string{"other"}
	w.start()
	wantSaid(t, w, "web/a sends https://1")

	standby := New(w.opts)
	for _, a := range append(standby.Handle(w.now, Config{State: ConfigPresent}), standby.Handle(w.now, Start{Generation: w.gen, Kept: w.kept, Standby: true})...) {
		if _, is := a.(Send); is {
			t.Errorf("a process that stands by sends %+v", a)
		}
	}
}

// A message without room is in memory alone, and no older one of its key comes after it.
func TestKeptMessagesHaveABound(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), hk("a", onWatch("nodes"))))
	w.away = true
	var sent []Message
	w.told = func(a Action) {
		if a, ok := a.(Send); ok {
			sent = append(sent, a.Messages...)
		}
	}
	say := func(key string, size int) Message {
		w.hooks["web/a"] = func(RunHook) (effect.Effects, error) {
			return effect.Effects{Messages: []effect.Message{{Key: key, Request: effect.Request{URL: "https://x", Body: make([]byte, size)}}}}, nil
		}
		sent = nil
		if w.e == nil {
			w.start()
		} else {
			w.changed("web/a#nodes")
		}
		if len(sent) != 1 {
			t.Fatalf("%d messages are sent", len(sent))
		}
		return sent[0]
	}
	first := say("k", 30<<10) // 40 KiB as it is kept
	if second := say("", 30<<10); first.Name == "" || second.Name != "" || w.keptMessages("web") != 1 {
		t.Errorf("kept as %q and %q, %d are kept", first.Name, second.Name, w.keptMessages("web"))
	}
	if again := say("k", 40<<10); again.Name != first.Name || again.Sum == first.Sum {
		t.Errorf("a later one of the key is kept as %q %s, the first one as %q %s", again.Name, again.Sum, first.Name, first.Sum)
	}
	// The end of an earlier one says nothing of the later one.
	w.in(Sent{Module: "web", Sums: map[string]string{first.Name: first.Sum}})
	w.in(Sent{Module: "gone", Sums: map[string]string{first.Name: first.Sum}})
	if w.keptMessages("web") != 1 {
		t.Error("the later message is forgotten")
	}
	if large := say("k", MaxKeptMessages); large.Name != "" || w.keptMessages("web") != 0 {
		t.Errorf("kept as %q, %d are kept", large.Name, w.keptMessages("web"))
	}
}

// A call about an object that is not there is refused, whatever would cause such a run.
func TestACallOfAnObjectThatIsNotThereIsRefused(t *testing.T) {
	w := newWorld(t, mod("web", isOn(), eachHook("a", false)))
	w.objects["o"] = Object{Name: "o"}
	w.start()
	why := ""
	w.told = func(a Action) {
		if a, ok := a.(Respond); ok && a.Err != nil {
			why = a.Err.Error()
		}
	}
	w.in(Requested{ID: 1, Hook: "web/a", Key: "gone"})
	if why == "" {
		t.Error("it runs")
	}
}
