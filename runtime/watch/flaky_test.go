package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
)

// flaky is an API server of which each watch ends in its own way: it is cut between events or
// in the midst of one, says nothing any more, or that its version is too old.
type flaky struct {
	listClient
	r       *rand.Rand
	version int
	calm    bool
	objects map[string]map[string]any
	history []frameOf // from version first+1 on
	first   int
	news    chan struct{}
}

type frameOf struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

func (c *flaky) put(name, data string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	obj := configMap("a", name, data)
	obj["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.version)
	typ := "MODIFIED"
	switch before := c.objects[name]; {
	case data == "" && before == nil:
		typ = ""
	case data == "":
		typ = "DELETED"
		delete(c.objects, name)
	case before == nil:
		typ = "ADDED"
		c.objects[name] = obj
	default:
		c.objects[name] = obj
	}
	c.history = append(c.history, frameOf{typ, obj})
	close(c.news)
	c.news = make(chan struct{})
}

func (c *flaky) chance(n int) bool { return !c.calm && c.r.IntN(n) == 0 }

func (c *flaky) Each(_ context.Context, _ cluster.Mapping, _ string, _ metav1.ListOptions, fn func(map[string]any) error) (string, error) {
	c.mu.Lock()
	all, at, fail := slices.Collect(maps.Values(c.objects)), c.version, c.chance(3)
	c.mu.Unlock()
	for i, obj := range all {
		if fail && i == len(all)/2 {
			return "", errors.New("the connection is lost")
		}
		if err := fn(obj); err != nil {
			return "", err
		}
	}
	return strconv.Itoa(at), nil
}

func (c *flaky) Watch(ctx context.Context, _ cluster.Mapping, _ string, o metav1.ListOptions) (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := strconv.Atoi(o.ResourceVersion)
	initial := o.SendInitialEvents != nil
	switch {
	case c.chance(5):
		return nil, apierrors.NewTooManyRequests("wait", 1)
	case c.chance(5):
		return nil, errors.New("no route")
	case initial && at > c.version:
		return nil, apierrors.NewTimeoutError("too large", 1)
	}
	read, write := io.Pipe()
	context.AfterFunc(ctx, func() { write.Close() })
	go c.serve(write, at, initial)
	return read, nil
}

func (c *flaky) serve(w *io.PipeWriter, at int, initial bool) {
	defer w.Close()
	send := func(f frameOf) bool {
		data, _ := json.Marshal(f)
		c.mu.Lock()
		half, garbage := c.chance(30), c.chance(60)
		c.mu.Unlock()
		if garbage {
			data = []byte("{]")
		} else if half {
			data = data[:len(data)/2]
		}
		_, err := w.Write(data)
		return err == nil && !half && !garbage
	}
	bookmark := func(at int, ends bool) frameOf {
		meta := map[string]any{"resourceVersion": strconv.Itoa(at)}
		if ends {
			meta["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
		}
		return frameOf{"BOOKMARK", map[string]any{"metadata": meta}}
	}
	if initial {
		c.mu.Lock()
		at = c.version
		all := slices.Collect(maps.Values(c.objects))
		c.mu.Unlock()
		for _, obj := range all {
			if !send(frameOf{"ADDED", obj}) {
				return
			}
		}
		if !send(bookmark(at, true)) {
			return
		}
	}
	for {
		c.mu.Lock()
		news, expired, ends, marks, deaf := c.news, at < c.first, c.chance(20), c.chance(5), c.chance(50)
		var next *frameOf
		if !expired && at < c.version {
			next = &c.history[at-c.first]
		}
		c.mu.Unlock()
		switch {
		case expired:
			send(frameOf{"ERROR", map[string]any{"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}})
			return
		case ends:
			return
		case deaf:
			time.Sleep(time.Hour)
			return
		case next != nil:
			at++
			if next.Type != "" && !send(*next) {
				return
			}
		case marks:
			if !send(bookmark(at, false)) {
				return
			}
			fallthrough
		default:
			select {
			case <-news:
			case <-time.After(time.Minute):
				if !send(bookmark(at, false)) {
					return
				}
			}
		}
	}
}

// However watches and lists end, in the end a snapshot shows what there is.
func TestAFlakyServer(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			c := &flaky{r: rand.New(rand.NewPCG(seed, 1)), objects: map[string]map[string]any{}, news: make(chan struct{}), version: 5, first: 5}
			sink := &recorder{t: t, more: make(chan struct{})}
			m := New(Options{Client: c, Sink: sink})
			m.Start(configMaps("w"))
			user := rand.New(rand.NewPCG(seed, 2))
			for i := range 300 {
				data := fmt.Sprint(i)
				if user.IntN(3) == 0 {
					data = ""
				}
				c.put(fmt.Sprint("o", user.IntN(9)), data)
				if user.IntN(4) == 0 {
					time.Sleep(time.Duration(user.IntN(5000)) * time.Millisecond)
				}
				if user.IntN(60) == 0 {
					c.mu.Lock()
					c.first, c.history = c.version, nil
					c.mu.Unlock()
				}
			}
			c.mu.Lock()
			c.calm = true
			c.mu.Unlock()
			time.Sleep(90 * time.Minute)
			synctest.Wait()
			var want []string
			for _, name := range slices.Sorted(maps.Keys(c.objects)) {
				want = append(want, strconv.Quote(c.objects[name]["data"].(map[string]any)["d"].(string)))
			}
			if got := m.Snapshot("w"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("seed %d: snapshot %v, want %v", seed, got, want)
			}
			m.Shutdown()
			time.Sleep(2 * time.Hour) // a goroutine that is left is found as the bubble ends
		})
	}
}
