package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpserver"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// receiver is a process that receives requests, on this API server.
func receiver(t *testing.T, files map[string]string, on *store.Store) *fixture {
	t.Helper()
	ln, err := httpserver.Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, dir: t.TempDir(), ended: make(chan error, 1), namespace: "ops", store: on, receive: ln}
	f.config = &clientrest.Config{Host: "http://sim", Transport: f}
	f.driver = f.newDriver(files)
	return f
}

// send is a request to /count, and its answer.
func (f *fixture) send() string {
	resp, err := http.Post("http://"+f.receive.Addr().String()+"/count", "text/plain", http.NoBody)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// countingTree is a module that counts requests.
var countingTree = map[string]string{
	"web/module.star": "module(enabled = True)\n",
	"web/hooks/a.star": `
def count(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    return reply(200, "request %d" % n)

hook(count, on = [http.receive("/count", public = True, rate = 1000, burst = 1000)])
`,
}

// await waits for something.
func (f *fixture) await(what string, is func() bool) {
	f.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			f.Fatal(what)
		}
	}
}

// Requests that come to a process that stands by are answered where the Lease is held; those that come as it takes over
// wait for its hooks.
func TestRequestsAreForwardedToTheProcessThatLeads(t *testing.T) {
	f := receiver(t, countingTree, store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true}))
	f.start()
	f.await("the first process is not ready", func() bool { yes, _ := f.driver.Released(); return yes })
	g := receiver(t, countingTree, f.store)
	for is, want := range map[holding]string{
		{}: "has not seen who holds it", {seen: true}: "", {seen: true, name: "a_b"}: "by a_b, which says no address",
		{seen: true, name: "a_b__" + g.receive.Addr().String()}: "which is the address of this process, too",
		{seen: true, name: "a_b__none"}:                         "", {seen: true, name: g.driver.before()}: "", {seen: true, name: g.driver.identity}: "", {seen: true, name: f.driver.identity}: "",
	} {
		if got := g.driver.unreceived(is); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", is, got, want)
		}
	}
	g.start()
	f.await("the second process is not ready", func() bool { yes, _ := g.driver.Ready(); return yes })
	if got := g.send(); got != "200 request 1" || g.leads() {
		t.Errorf("got %s, and it leads is %t", got, g.leads())
	}

	stopped := make(chan struct{})
	var senders sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 4 {
		senders.Go(func() {
			for after := 0; after < 5; { // a few as it has taken over
				select {
				case <-stopped:
					after++
				default:
				}
				got := g.send()
				mu.Lock()
				answers[got]++
				mu.Unlock()
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	f.stop()
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
	f.await("it does not take over", g.leads)
	close(stopped)
	senders.Wait()
	for answer, n := range answers {
		if n > 1 || !strings.HasPrefix(answer, "200 request ") {
			t.Errorf("%d times: %s", n, answer)
		}
	}
	g.stop()
	if err := <-g.ended; err != nil {
		t.Error(err)
	}
}

// A process may have the Lease before it could stand by, as in a rollout. Others hand requests to it from then on, so
// they wait for its hooks.
func TestRequestsWaitForAProcessThatBegins(t *testing.T) {
	f := receiver(t, countingTree, store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true}))
	taken := make(chan struct{})
	f.answered = func(r *http.Request, _ *http.Response) {
		if strings.HasSuffix(r.URL.Path, "/secrets") && strings.Contains(r.URL.RawQuery, "kept") { // what was kept: no hook begins before
			select {
			case <-taken:
			case <-r.Context().Done():
			}
		}
	}
	f.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	is, moved := f.driver.holder.now()
	for ; is.role < takesOver; is, moved = f.driver.holder.now() {
		select {
		case <-moved:
		case <-ctx.Done():
			t.Fatal("it does not get the Lease")
		}
	}
	hook := f.driver.generation.Load().Modules["web"].Hooks[0]
	in := httpserver.Incoming{Hook: hook.ID, Request: &builtins.Request{Binding: hook.Bindings[0].Name}}
	if _, again, err := f.driver.tryReceived(ctx, in, is, moved, time.Now().Add(time.Minute)); !again || !errors.Is(err, engine.ErrNotReady) {
		t.Errorf("it is tried again: %t; %v", again, err)
	}
	asked := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { close(taken) }}) // its body is read
	r, err := http.NewRequestWithContext(asked, http.MethodPost, "http://"+f.receive.Addr().String()+"/count", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Expect", "100-continue")
	r.Header.Set("Starling-Forwarded", f.driver.identity)
	client := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute, DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != "request 1" {
		t.Errorf("%d: %q, %v", resp.StatusCode, body, err)
	}
	f.stop()
	select {
	case err := <-f.ended:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("it does not end")
	}
}

// A process that may not watch the Lease asks for it, and knows by that who leads.
func TestWhoLeadsIsKnownWithoutTheWatch(t *testing.T) {
	f := receiver(t, countingTree, store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true}))
	f.start()
	f.await("the first process is not ready", func() bool { yes, _ := f.driver.Released(); return yes })
	g := receiver(t, countingTree, f.store)
	g.before = func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/leases") { // to list, to watch
			return http.StatusForbidden
		}
		return 0
	}
	g.start()
	g.await("the second process is not ready", func() bool { yes, _ := g.driver.Ready(); return yes })
	if got := g.send(); got != "200 request 1" {
		t.Errorf("got %s", got)
	}
	if is := g.driver.Replica(); is.Leader || is.Holder != hostOf(f.driver.identity) {
		t.Errorf("%+v", is)
	}
}

// before is the name of the process before this one in the same container.
func (d *Driver) before() string { return hostOf(d.identity) + "_b__" + d.receiveAt }

// The name of a process in the Lease ends with its addresses, if it has them.
func TestAddressesOfHolders(t *testing.T) {
	for name, want := range map[string][2]string{
		"starling-7d_0b0c": {}, "": {}, "a_b__": {}, "a_b_10.1.2.3:9443_": {"10.1.2.3:9443", ""}, "a_b__10.1.2.3:8080": {"", "10.1.2.3:8080"},
		"a_b_[fd00::1]:9443_[fe80::1%eth0]:8080": {"[fd00::1]:9443", "[fe80::1%eth0]:8080"}, "a_b_evil.example:80_10.1.2.3": {},
	} {
		webhooks, receive := addressesOf(name)
		if got := [2]string{webhooks, receive}; got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if webhooks, receive := addressesOf(identity("10.1.2.3:1", "10.1.2.3:2")); webhooks != "10.1.2.3:1" || receive != "10.1.2.3:2" {
		t.Errorf("they are %q and %q", webhooks, receive)
	}
}

// A listener on all addresses is reached under the one that leads to the API server, if that is not this machine alone.
func TestReachedAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", "[fd00::1]:8080": "[fd00::1]:8080", ":8080": "", "[::]:8080": "", "localhost:8080": "", "127.0.0.1:0": "",
	} {
		if got := reached(address, &clientrest.Config{Host: "https://127.0.0.1:6443"}); got != want {
			t.Errorf("%s is reached at %q, want %q", address, got, want)
		}
	}
}

// A path that no hook of this process has may be one of a newer tree: the process that leads is asked, as long as
// there is one that can be.
func TestRequestsForPathsOfTheProcessThatLeads(t *testing.T) {
	f := receiver(t, countingTree, store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true}))
	f.start()
	f.await("the first process is not ready", func() bool { yes, _ := f.driver.Released(); return yes })
	g := receiver(t, map[string]string{"web/module.star": "module(enabled = True)\n"}, f.store)
	g.start()
	g.await("the second process is not ready", func() bool { yes, _ := g.driver.Ready(); return yes })
	if got := g.send(); got != "200 request 1" || g.leads() {
		t.Errorf("got %s, and it leads is %t", got, g.leads())
	}
	for is, again := range map[holding]bool{
		{role: takesOver, seen: true}: false, {role: works, seen: true}: false, {role: waits, seen: true, name: "a_b"}: false,
		{role: waits, seen: true, name: "a_b__none"}: false, {role: waits, seen: true, name: "a_b__" + g.driver.receiveAt}: false,
		{role: waits}: true, {role: waits, seen: true}: true, {role: waits, seen: true, name: g.driver.before()}: true, {role: waits, seen: true, name: g.driver.identity}: true,
	} {
		_, tried, err := g.driver.tryReceived(t.Context(), httpserver.Incoming{}, is, nil, time.Now().Add(time.Minute))
		if tried != again || errors.Is(err, httpserver.ErrNoPath) == again || errors.Is(err, httpserver.ErrAway) != again {
			t.Errorf("%+v: it is tried again: %t; %v", is, tried, err)
		}
	}
	f.stop()
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
	g.await("it does not take over", g.leads)
	if got := g.send(); got != "404 no hook receives requests here\n" {
		t.Errorf("as it leads itself: %s", got)
	}
	g.stop()
	if err := <-g.ended; err != nil {
		t.Error(err)
	}
}
