package watch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
)

// pastClient answers the next lists with one object each, and the last of them again and again.
type pastClient struct {
	listClient
	answers []pastAnswer
}

type pastAnswer struct {
	version int
	name    string
}

func (c *pastClient) Each(_ context.Context, _ cluster.Mapping, _ string, _ metav1.ListOptions, fn func(map[string]any) error) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	a := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	obj := configMap("a", a.name, a.name)
	obj["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(a.version)
	return fmt.Sprint(a.version), fn(obj)
}

func (c *pastClient) next(answers ...pastAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = answers
}

// One list of the past says nothing, so what is gone does not come back. After a second one the history of the server
// begins anew.
func TestAListOfThePast(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("apart=%t", apart), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r := &pastClient{}, &recorder{t: t, more: make(chan struct{})}
				m := New(Options{Client: c, Sink: r, Idle: time.Hour})
				defer m.Shutdown()
				start := func(id string) {
					spec := configMaps(id)
					spec.Apart, spec.FilterID = apart, id // each has a list to itself
					m.Start(spec)
				}
				show := func(id, want string) {
					t.Helper()
					time.Sleep(time.Minute)
					if got := fmt.Sprint(m.Snapshot(id)); got != want {
						t.Errorf("%s: %s, want %s", id, got, want)
					}
				}
				past, now := pastAnswer{50, "past"}, pastAnswer{100, "now"}
				c.next(now)
				start("first")
				show("first", `["now"]`)
				r.told("first synced")

				c.next(past, now)
				m.Renew()
				show("first", `["now"]`)
				r.nothing()

				c.next(past, now)
				start("late")
				show("late", `["now"]`)

				c.next(pastAnswer{50, "restored"})
				m.Renew()
				show("first", `["restored"]`)
				show("late", `["restored"]`)
			})
		})
	}
}
