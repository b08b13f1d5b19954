package live

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/starling-operator/starling/runtime/effect"
)

// The next process, which has another state folder, sends messages that have not arrived, and no others. Nothing
// of a message stands in the key under which it is kept.
func TestMessagesOutliveTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{
			"web/module.star": "module(enabled = True, http = [\"chat.example\"])\n",
			"web/hooks/a.star": `
def say(ctx):
    if not ctx.state.get("said"):
        ctx.state.set("said", True)
        http.send("POST", "https://chat.example/hook?token=hush", body = "hello", key = "hush")

hook(say, on = [startup()])
`,
		}
		var mu sync.Mutex
		var tries []string
		answer := errors.New("connection refused")
		take := func(f *fixture) *fixture {
			f.driver.outbox.o.send = func(_ context.Context, r effect.Request) error {
				mu.Lock()
				defer mu.Unlock()
				tries = append(tries, r.Method+" "+r.URL+" "+string(r.Body))
				return answer
			}
			return f
		}
		run := func(f *fixture, err error) (heard []string, kept bool) {
			t.Helper()
			mu.Lock()
			tries, answer = nil, err
			mu.Unlock()
			f.start()
			f.waitReady()
			time.Sleep(time.Minute)
			f.stop()
			if err := <-f.ended; err != nil {
				t.Error(err)
			}
			core, err := v1.NewForConfig(f.driver.o.Client.UnfencedConfig())
			if err != nil {
				t.Fatal(err)
			}
			secrets, err := core.Secrets("ops").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range secrets.Items {
				for key, data := range s.Data {
					kept = kept || strings.Contains(string(data), "token=hush")
					if strings.Contains(key, "hush") {
						t.Errorf("the Secret %s has a key %q", s.Name, key)
					}
				}
			}
			return tries, kept
		}
		const message = "POST https://chat.example/hook?token=hush hello"
		first := take(newFixture(t, files))
		if heard, kept := run(first, answer); len(heard) < 2 || heard[0] != message || !kept {
			t.Errorf("heard %q, kept is %v", heard, kept)
		}
		if heard, kept := run(take(first.beside(files)), nil); len(heard) != 1 || heard[0] != message || kept {
			t.Errorf("the second process: heard %q, kept is %v", heard, kept)
		}
		if heard, _ := run(take(first.beside(files)), nil); len(heard) != 0 {
			t.Errorf("the third process: heard %q", heard)
		}
	})
}
