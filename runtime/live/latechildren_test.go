package live

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// counted counts requests but those for the Lease and watches, after what answers them already.
type counted struct {
	mu       sync.Mutex
	requests []string
}

func (f *fixture) count() *counted {
	c, before := &counted{}, f.answered
	f.answered = func(r *http.Request, resp *http.Response) {
		if before != nil {
			before(r, resp)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if !strings.Contains(r.URL.Path, "leases") && r.URL.Query().Get("watch") == "" {
			c.requests = append(c.requests, r.Method+" "+r.URL.Path)
		}
	}
	return c
}

// take returns the requests since it was called last that hold all of this.
func (c *counted) take(with string) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		if strings.Contains(r, with) {
			out = append(out, r)
		}
	}
	c.requests = nil
	return out
}

// A look of a controller sees what the one before it has written and deleted, however late the watch of its
// children is: nothing is written twice, and no value is made anew.
func TestALookSeesWhatTheOneBeforeHasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins)
		g := f.gateWatches(reconcile.ControllerLabel)
		c := f.count()
		f.make("s", "site", nil)
		f.start()
		f.waitReady()
		f.siteRuns()
		c.take("")
		open := g.close()
		defer open()
		child := secretAt("sites", "one")
		var first string
		for _, step := range []struct{ data, text, write string }{
			{`{"secrets": "one", "text": "a"}`, "a", "PATCH"},
			{`{"text": "b"}`, "b", "PATCH"},
			{`{"more": "1"}`, "b", ""},
			{`{"secrets": null}`, "", "GET DELETE"},
			{`{"more": "2"}`, "", ""},
			{`{"secrets": "one", "text": "c"}`, "c", "PATCH"},
			{`{"more": "3"}`, "c", ""},
		} {
			f.patch("s", `{"data": `+step.data+`}`)
			time.Sleep(10 * time.Second)
			want := []string{}
			for _, verb := range strings.Fields(step.write) {
				want = append(want, verb+" /api/v1/namespaces/sites/secrets/one")
			}
			if got := c.take("secrets/one"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: the requests are %q, want %q", step.data, got, want)
			}
			if f.is(child) != (step.text != "") {
				t.Errorf("%s: the child is there: %t", step.data, f.is(child))
				continue
			}
			if step.text == "" {
				continue
			}
			_, password, text := f.secret(child)
			if first == "" {
				first = password
			}
			if fresh := step.text == "c"; (password == first) == fresh {
				t.Errorf("%s: the password is that of before: %t", step.data, !fresh)
			}
			if text == "" {
				t.Errorf("%s: the text is %q", step.data, text)
			}
		}
		uid, password, text := f.secret(child)
		open()
		f.siteRuns()
		if u, p, x := f.secret(child); u != uid || p != password || x != text {
			t.Error("once the watch has told all, the child is another one")
		}
		if got := c.take(""); len(got) > 0 {
			t.Errorf("once the watch has told all, there are requests: %q", got)
		}
		f.stop()
		<-f.ended
	})
}

// A watch of a controller's children that has gone deaf is noticed: a child that went meanwhile comes back.
func TestADeafWatchOfAControllerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins, renewsSeldom)
		g := f.gateWatches(reconcile.ControllerLabel)
		for i := range 5 {
			f.make(fmt.Sprint("s", i), "site", map[string]any{"secrets": fmt.Sprint("of-s", i)})
		}
		f.start()
		f.waitReady()
		before := f.siteRuns()
		open := g.close()
		defer open()
		child := secretAt("sites", "of-s3")
		if _, err := f.store.Delete(child, store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if f.siteRuns() != before {
			t.Error("the watch is not deaf")
		}
		time.Sleep(10 * time.Minute)
		if runs := f.siteRuns() - before; runs != 2 || !f.is(child) {
			t.Errorf("%d runs, the child is there: %t", runs, f.is(child))
		}
		open()
		f.stop()
		<-f.ended
	})
}

// A burst of parents costs two requests each, one for the finalizer and one for the child, beside the one that
// makes the parent, and is done within seconds; so is one that changes all of them. One that changes nothing that counts costs none.
func TestABurstOfParents(t *testing.T) {
	const parents = 500
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins)
		c := f.count()
		f.start()
		f.waitReady()
		f.siteRuns()
		burst := func(what string, each, runs int, change func(name string)) {
			t.Helper()
			before := f.siteRuns()
			c.take("")
			for i := range parents {
				change(fmt.Sprint("s", i))
			}
			// A few parents may look once more, where their own write is heard after the next change.
			if n := f.siteRuns() - before; n > runs*parents+parents/100 {
				t.Errorf("%s: %d runs, want %d of each", what, n, runs)
			}
			if got := c.take(""); len(got) > each*parents {
				t.Errorf("%s: %d requests, want %d for each at most", what, len(got), each)
			}
		}
		text := func(want string) {
			t.Helper()
			for i := range parents {
				if _, _, got := f.secret(secretAt("sites", fmt.Sprint("of-s", i))); got != want {
					t.Fatalf("10 s after the change the child of s%d has %q, want %q", i, got, want)
				}
			}
		}
		burst("parents come", 3, 2, func(name string) { f.make(name, "site", map[string]any{"secrets": "of-" + name}) })
		text("eA==")
		burst("all change", 1, 2, func(name string) { f.patch(name, `{"data": {"text": "y"}}`) })
		text("eQ==")
		burst("nothing that counts changes", 0, 1, func(name string) { f.patch(name, `{"data": {"note": "1"}}`) })
		f.stop()
		<-f.ended
	})
}

// stairs has a controller of ConfigMaps with the label site: each has three children in another namespace, one
// after the other. KINDS are those that it owns, PARTS those that it wants.
const stairs = `
def stairs(ctx, o):
    wanted = "PARTS".split()
    if not wanted:
        fail("it is broken")
    return [
        part({"apiVersion": "v1", "kind": kind, "metadata": {"name": o.metadata.name, "namespace": "far"}}, name = kind, after = wanted[:i])
        for i, kind in enumerate(wanted)
    ]

controller("stairs", k8s.watch("v1", "ConfigMap", labels = "site"), stairs, owns = [owns("v1", kind) for kind in "KINDS".split()])
`

// Children of kinds that the controller does not own any more go as the others do, in the reverse order, with
// their parent or without it, also when desired fails. One that is wanted in another place of the order notes it.
func TestAKindIsNotOwnedAnyMore(t *testing.T) {
	tree := func(kinds, parts string) map[string]string {
		return map[string]string{
			"web/module.star":  "module(enabled = True)\n",
			"web/hooks/a.star": strings.NewReplacer("KINDS", kinds, "PARTS", parts).Replace(stairs),
		}
	}
	all := "Secret ServiceAccount ResourceQuota"
	for name, c := range map[string]struct {
		kinds, parts string
		leaves       bool // the parent is deleted while no process runs
		want         string
	}{
		"the parent stays": {"ServiceAccount", "ServiceAccount", false, "PATCH serviceaccounts, GET resourcequotas, DELETE resourcequotas, GET secrets, DELETE secrets"},
		"the parent goes":  {"ServiceAccount", "ServiceAccount", true, "GET resourcequotas, DELETE resourcequotas, GET serviceaccounts, DELETE serviceaccounts, GET secrets, DELETE secrets"},
		"desired fails":    {"ServiceAccount", "", true, "GET resourcequotas, DELETE resourcequotas, GET serviceaccounts, DELETE serviceaccounts, GET secrets, DELETE secrets"},
		"no kind of those": {"Service", "", true, "GET resourcequotas, DELETE resourcequotas, GET serviceaccounts, DELETE serviceaccounts, GET secrets, DELETE secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, tree(all, all))
				requests := f.count()
				f.make("a", "site", nil)
				f.start()
				f.waitReady()
				f.siteRuns()
				f.stop()
				<-f.ended
				if made := requests.take("/namespaces/far/"); len(made) != 3 {
					t.Fatalf("made with %q", made)
				}
				if c.leaves {
					if _, err := f.store.Delete(siteConfigMap("a"), store.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				f.driver = f.newDriver(tree(c.kinds, c.parts))
				f.start()
				time.Sleep(time.Minute)
				got := strings.NewReplacer("/api/v1/namespaces/far/", "", "/a", "").Replace(strings.Join(requests.take("/namespaces/far/"), ", "))
				if got != c.want {
					t.Errorf("the requests are %q, want %q", got, c.want)
				}
				if f.is(siteConfigMap("a")) == c.leaves {
					t.Errorf("the parent is there: %t", !c.leaves)
				}
				f.stop()
				<-f.ended
			})
		})
	}
}
