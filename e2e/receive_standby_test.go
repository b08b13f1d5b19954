package e2e

import "testing"

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
