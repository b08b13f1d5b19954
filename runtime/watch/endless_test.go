package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// scripted is an API server that lists two objects, and whose watches say what a test has them say.
type scripted struct {
	listClient
	initial func(send say, wait func(time.Duration)) // nil: lists are not streamed
	later   chan string                              // frames of watches that go on after a list
}

// say sends one frame of a watch.
type say func(typ string, obj map[string]any)

func numbered(name, data string, version int) map[string]any {
	obj := configMap("a", name, data)
	obj["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(version)
	return obj
}

func frame(typ string, obj map[string]any) string {
	data, _ := json.Marshal(map[string]any{"type": typ, "object": obj})
	return string(data)
}

func (c *scripted) Each(_ context.Context, _ cluster.Mapping, _ string, _ metav1.ListOptions, fn func(map[string]any) error) (string, error) {
	c.mu.Lock()
	c.lists++
	c.mu.Unlock()
	return "10", errors.Join(fn(numbered("x", "1", 5)), fn(numbered("y", "2", 6)))
}

func (c *scripted) Watch(ctx context.Context, _ cluster.Mapping, _ string, o metav1.ListOptions) (io.ReadCloser, error) {
	if o.SendInitialEvents != nil && c.initial == nil {
		return nil, errors.New("lists are not streamed")
	}
	read, write := io.Pipe()
	context.AfterFunc(ctx, func() { write.Close() })
	go func() {
		defer write.Close()
		if o.SendInitialEvents != nil {
			c.initial(func(typ string, obj map[string]any) { _, _ = io.WriteString(write, frame(typ, obj)) }, func(d time.Duration) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
					runtime.Goexit()
				}
			})
			return
		}
		for {
			select {
			case text := <-c.later:
				_, _ = io.WriteString(write, text)
			case <-ctx.Done():
				return
			}
		}
	}()
	return read, nil
}

// A server that takes the question for a list through the watch, and never says that the list is complete, delays a
// first snapshot by seconds, and is not asked so again.
func TestAListThatNeverEnds(t *testing.T) {
	bookmark := map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}
	forms := map[string]struct {
		initial func(send say, wait func(time.Duration))
		within  time.Duration
	}{
		"bookmarks without the end": {func(send say, wait func(time.Duration)) {
			send("ADDED", numbered("x", "1", 5))
			send("ADDED", numbered("y", "2", 6))
			for range 1000 {
				wait(5 * time.Second)
				send("BOOKMARK", bookmark)
			}
		}, 15 * time.Second},
		"ends after the objects": {func(send say, wait func(time.Duration)) {
			send("ADDED", numbered("x", "1", 5))
			send("ADDED", numbered("y", "2", 6))
		}, time.Second},
		"silence": {func(_ say, wait func(time.Duration)) { wait(time.Hour) }, 11 * time.Second},
		"changes of one object": {func(send say, wait func(time.Duration)) {
			for i := range 1000 {
				wait(2 * time.Second)
				send("MODIFIED", numbered("x", "1", 11+i))
			}
		}, 15 * time.Second},
		"objects without end": {func(send say, wait func(time.Duration)) {
			for i := range 1000 {
				wait(3 * time.Second)
				send("ADDED", numbered(fmt.Sprint("o", i), "o", 11+i))
			}
		}, 65 * time.Second},
		"one object comes and goes": {func(send say, wait func(time.Duration)) {
			for i := range 1000 {
				wait(3 * time.Second)
				send([]string{"ADDED", "DELETED"}[i%2], numbered("x", "o", 11+i))
			}
		}, 65 * time.Second},
	}
	for name, form := range forms {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, apart=%t", name, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &scripted{initial: form.initial, later: make(chan string)}
					r := &recorder{t: t, more: make(chan struct{})}
					m := New(Options{Client: c, Sink: r})
					defer m.Shutdown()
					began := time.Now()
					spec := configMaps("w")
					spec.Apart = apart
					m.Start(spec)
					r.await("w synced served=true")
					if took := time.Since(began); took > form.within {
						t.Errorf("the snapshot came after %s, want %s at the most", took, form.within)
					}
					if got := fmt.Sprint(m.Snapshot("w")); got != `["1" "2"]` {
						t.Errorf("snapshot %s", got)
					}
					c.later <- frame("ADDED", numbered("z", "3", 12))
					r.await(`w added a/z "3"`)
					r.nothing()
				})
			})
		}
	}
}

// An event that cannot be decoded is told: else lists would follow each other, and nobody would know why.
func TestAnEventThatNobodyCanRead(t *testing.T) {
	for _, text := range []string{"{]", `{"type":"MODIFIED","object":"text"}`, `{"type":"ADDED"}`, `{"type":"MODIFIED","object":[1]}`} {
		synctest.Test(t, func(t *testing.T) {
			c := &scripted{later: make(chan string)}
			r := &recorder{t: t, more: make(chan struct{})}
			m := New(Options{Client: c, Sink: r})
			defer m.Shutdown()
			m.Start(configMaps("w"))
			r.await("w synced served=true")
			c.later <- text
			synctest.Wait()
			r.mu.Lock()
			got := strings.Join(r.lines, "\n")
			r.lines = nil
			r.mu.Unlock()
			if !strings.HasPrefix(got, "w failed an event of the watch ") {
				t.Errorf("%s: the sink was told %q", text, got)
			}
			time.Sleep(time.Minute) // listed anew
			c.later <- frame("ADDED", numbered("z", "3", 12))
			r.await("w failed <nil>", `w added a/z "3"`)
		})
	}
}

// Somebody changes an object, we delete it, and the answer to the deletion comes before the watch tells of the change:
// the object does not come back for a moment.
func TestAChangeBeforeOurDeletionIsNoNewObject(t *testing.T) {
	for _, apart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &scripted{later: make(chan string)}
			r := &recorder{t: t, more: make(chan struct{})}
			m := New(Options{Client: c, Sink: r})
			defer m.Shutdown()
			spec := configMaps("w")
			spec.Apart = apart
			m.Start(spec)
			r.await("w synced served=true")
			ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
			m.Observe(ref, nil, nil, time.Now())
			r.await(`w deleted a/x "1"`)
			c.later <- frame("ADDED", numbered("z", "3", 12)) // the stream is past the version that was known
			r.await(`w added a/z "3"`)
			c.later <- frame("MODIFIED", numbered("x", "changed", 13))
			c.later <- frame("MODIFIED", numbered("x", "again", 14))
			c.later <- frame("DELETED", numbered("x", "again", 15))
			c.later <- frame("ADDED", numbered("x", "anew", 16))
			r.await(`w added a/x "anew"`)
			c.later <- frame("MODIFIED", numbered("x", "newer", 17))
			r.await(`w modified a/x "newer"`)
			r.nothing()
		})
	}
}

// silentAtFirst is one whose first watch says nothing.
type silentAtFirst struct {
	scripted
	opened atomic.Int32
}

func (c *silentAtFirst) Watch(ctx context.Context, m cluster.Mapping, namespace string, o metav1.ListOptions) (io.ReadCloser, error) {
	if o.SendInitialEvents == nil && c.opened.Add(1) == 1 {
		return c.listClient.Watch(ctx, m, namespace, o)
	}
	return c.scripted.Watch(ctx, m, namespace, o)
}

func TestSilentWatchIsOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &silentAtFirst{scripted: scripted{later: make(chan string)}}
		r := &recorder{t: t, more: make(chan struct{})}
		m := New(Options{Client: c, Sink: r, Idle: time.Hour})
		defer m.Shutdown()
		began := time.Now()
		m.Start(configMaps("w"))
		r.await("w synced served=true")
		c.later <- frame("ADDED", numbered("z", "3", 12)) // once there is a watch that speaks
		r.await(`w added a/z "3"`)
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("it is opened anew after %s", took)
		}
		r.nothing()
	})
}
