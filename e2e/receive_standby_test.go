package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// While the trees of two processes differ, requests for a path that only the one that leads has are answered by its
// hook, whichever of the two they come to; a path that neither has is one that is not there.
func TestAPathThatOnlyTheLeaderHas(t *testing.T) {
	t.Parallel()
	const token = "hush-path-17"
	module := `module(enabled = True, grants = [grant("v1", "Secret", verbs = ["get"])])`
	f := newFixture(t, map[string]string{"web/module.star": module, "web/hooks/a.star": `
def take(ctx):
    return reply(200, "taken")

hook(take, on = [http.receive("/new", secret = secret_ref("hook", "token"), rate = 1000)])
`}, receiveRole).alone("the other one has another tree")
	f.secret("hook", map[string]string{"token": token})
	f.start("--receive-address", "127.0.0.1:0")
	f.waitAnswer(200, "/new", "", token)
	second := (&fixture{t: t, ns: f.ns, name: f.name, modules: t.TempDir(), kube: f.kube}).alone("it is one of two")
	second.write(map[string]string{"web/module.star": module})
	second.start("--receive-address", "127.0.0.1:0")
	second.waitReadyAs(false)
	for _, test := range []struct {
		path, secret string
		code         int
	}{{"/new", token, 200}, {"/new", "other", 401}, {"/none", token, 404}} {
		if code, text := second.deliver(test.path, "", test.secret); code != test.code {
			t.Errorf("%s, signed with %q: %d %s, want %d", test.path, test.secret, code, text, test.code)
		}
	}
	f.process.Stop()
	second.waitReady()
	if code, text := second.deliver("/new", "", token); code != 404 {
		t.Errorf("the process with the older tree leads: %d %s", code, text)
	}
}

// Somebody who may write the Lease names an address of his as that of the process that leads: no request goes there.
// A token goes to no other process at all.
func TestAForgedLeaseGetsNoRequests(t *testing.T) {
	t.Parallel()
	const token = "hush-lease-18"
	files := map[string]string{
		"web/module.star": `module(enabled = True, grants = [grant("v1", "Secret", verbs = ["get"])])`,
		"web/hooks/a.star": `
def take(ctx):
    return reply(200, "taken")

hook(take, on = [http.receive("/new", secret = secret_ref("hook", "token"), signature = "bearer", rate = 1000)])
`}
	f := newFixture(t, files, receiveRole).alone("somebody forges its Lease")
	f.secret("hook", map[string]string{"token": token})
	f.start("--receive-address", "127.0.0.1:0")
	send := func(to *fixture) error {
		if code, text := to.deliver("/new", "", "", "Authorization", "Bearer "+token); code != 200 {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	}
	f.eventually("the first process answers", func() error { return send(f) })
	second := (&fixture{t: t, ns: f.ns, name: f.name, modules: t.TempDir(), kube: f.kube}).alone("it is one of two")
	second.write(files)
	second.start("--receive-address", "127.0.0.1:0")
	second.waitReadyAs(false)
	second.eventually("the second process has it answered", func() error { return send(second) })
	if code, text := second.deliver("/new", "", "", "Authorization", "Bearer wrong"); code != 401 {
		t.Errorf("with another token: %d %s", code, text)
	}

	sent := make(chan struct{}, 1000)
	theirs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { sent <- struct{}{} }))
	defer theirs.Close()
	forged := fmt.Appendf(nil, `{"spec":{"holderIdentity":"starling_1__%s","leaseDurationSeconds":3}}`, theirs.Listener.Addr())
	leases := shared.Client.CoordinationV1().Leases(f.ns)
	var late sync.WaitGroup
	defer late.Wait()
	for range 5 {
		if _, err := leases.Patch(t.Context(), f.name, types.MergePatchType, forged, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, to := range []*fixture{f, second} {
			late.Go(func() { _, _ = to.deliver("/late", "", "", "Authorization", "Bearer "+token) }) // a path that it does not know
		}
	}
	second.eventually("requests are answered again", func() error { return send(second) })
	select {
	case <-sent:
		t.Error("a request has gone to the forged address")
	default:
	}
}
