package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/status"
)

// outside is a server that hooks speak to.
type outside struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // "POST /chat body"
	fail int      // so many answers are 503
	// look is called before an answer; its result goes with what was got.
	look func() string
}

func newOutside(t *testing.T) *outside {
	o := &outside{}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		text := r.Method + " " + r.URL.Path + " " + string(body)
		if o.look != nil {
			text += " " + o.look()
		}
		o.got = append(o.got, text)
		switch {
		case r.URL.Path == "/away":
			http.Redirect(w, r, "http://unlisted.example/", http.StatusFound)
		case r.URL.Path == "/config":
			io.WriteString(w, `{"size": 3}`)
		case o.fail > 0:
			o.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *outside) address() string { return o.Listener.Addr().String() }

func (o *outside) heard() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.got...)
}

var receives = regexp.MustCompile(`"receive":"([^"]+)"`)

// deliver sends a request to a path of http.receive, signed as GitHub does with the
// secret unless that is empty.
func (f *fixture) deliver(path, body, secret string, headers ...string) (int, string) {
	f.t.Helper()
	found := receives.FindStringSubmatch(f.process.Output())
	if found == nil {
		return 0, "it does not receive yet"
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, "http://"+found[1]+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if secret != "" {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	return resp.StatusCode, readAll(resp.Body)
}

// waitAnswer delivers until the answer is the code.
func (f *fixture) waitAnswer(code int, path, body, secret string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s answers %d", path, code), func() error {
		if got, text := f.deliver(path, body, secret); got != code {
			return fmt.Errorf("it is %d: %s", got, text)
		}
		return nil
	})
}

func (f *fixture) secret(name string, data map[string]string) {
	f.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}
	if _, err := shared.Client.CoreV1().Secrets(f.ns).Create(f.t.Context(), s, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

var receiveRole = least{HooksIn: map[string][]rbacv1.PolicyRule{"$NS": {
	allow("", "configmaps", "create", "patch"), allow("", "secrets", "get"),
}}}

const receiving = `
def take(ctx):
    body = ctx.request.json
    if body == None:
        return reply(400, "no JSON")
    k8s.apply({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "got-" + body["name"], "namespace": body.get("namespace", "$NS")},
        "data": {"text": body.get("text", ""), "event": ctx.request.headers.get("x-event", "")},
    })
    http.send("POST", "http://$CHAT/chat", json = {"name": body["name"]}, headers = {"Authorization": k8s.secret("hook", "chat")})
    return reply(201, {"made": body["name"]})

hook(take, on = [http.receive("/github", secret = secret_ref("hook", "token"), max_bytes = 2000)])

def open(ctx):
    return reply(200, "open")

hook(open, on = [http.receive("/open", public = True)])
`

// A request is answered once what its hook wrote is written, and nobody else's is.
func TestReceivedRequestsAreWrittenBeforeTheyAreAnswered(t *testing.T) {
	t.Parallel()
	const token, chat = "hush-receive-61", "hush-chat-62"
	out := newOutside(t)
	f := newFixture(t, map[string]string{
		"web/module.star": `module(enabled = True, http = ["` + out.address() + `"], grants = [
    grant("v1", "ConfigMap", verbs = ["apply"], namespaces = ["*"]), grant("v1", "Secret", verbs = ["get"]),
])`,
		"web/hooks/a.star": strings.ReplaceAll(receiving, "$CHAT", out.address()),
	}, receiveRole)
	f.start("--receive-address", "127.0.0.1:0")
	f.waitReady()
	made := func(name string) string {
		data, err := configMap(t, f.ns, name)
		if err != nil {
			return "none"
		}
		return data["event"] + data["text"]
	}
	out.look = func() string { return made("got-a") } // what the chat could see

	// Without its secret nobody is let in.
	f.waitAnswer(200, "/open", "", "")
	if code, text := f.deliver("/github", `{"name": "a"}`, token); code != 503 || !strings.Contains(text, "cannot be checked now") {
		t.Errorf("without a secret: %d %s", code, text)
	}
	f.secret("hook", map[string]string{"token": token, "chat": chat})
	out.mu.Lock()
	out.fail = 1
	out.mu.Unlock()
	f.waitAnswer(201, "/github", `{"name": "a", "text": "hello"}`, token)
	if got := made("got-a"); got != "hello" {
		t.Errorf("after the answer there is %q", got)
	}
	f.eventually("the message arrives, in its second try", func() error {
		if heard := out.heard(); len(heard) != 2 || heard[0] != heard[1] || heard[0] != `POST /chat {"name":"a"} hello` {
			return fmt.Errorf("heard %q", heard)
		}
		return nil
	})

	for _, test := range []struct {
		path, body, secret string
		code               int
		says               string
	}{
		{"/github", `{"name": "b"}`, "", 401, "the signature is missing, wrong or too old"},
		{"/github", `{"name": "b"}`, "other", 401, "the signature is missing, wrong or too old"},
		{"/github", `{"name": `, token, 400, "no JSON"},
		{"/github", "", token, 400, "no JSON"},
		{"/github", `{"name": "b", "text": "` + strings.Repeat("x", 2000) + `"}`, token, 413, "larger than 2000 bytes"},
		{"/github", `[]`, token, 500, "the hook failed"},                                        // what Starlark says
		{"/github", `{"name": "b", "namespace": "kube-system"}`, token, 500, "the hook failed"}, // what the API server says
		{"/other", "", token, 404, "no hook receives requests here"},
	} {
		if code, text := f.deliver(test.path, test.body, test.secret); code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%s %.40s: got %d %s, want %d", test.path, test.body, code, text, test.code)
		}
	}
	if code, text := f.deliver("/github", `{"name": "c"}`, token, "X-Event", "push"); code != 201 || text != `{"made":"c"}` || made("got-c") != "push" {
		t.Errorf("got %d %s, %s", code, text, made("got-c"))
	}
	f.eventually("only what is written is told", func() error {
		if heard := out.heard(); len(heard) != 3 || !strings.HasPrefix(heard[2], `POST /chat {"name":"c"}`) {
			return fmt.Errorf("heard %q", heard)
		}
		return nil
	})
	if got := made("got-b"); got != "none" {
		t.Errorf("a refused request left %q", got)
	}

	// After a restart, and off.
	if code := f.process.Stop(); code != 0 {
		t.Fatalf("stopped with exit code %d", code)
	}
	f.start("--receive-address", "127.0.0.1:0")
	f.waitAnswer(201, "/github", `{"name": "d"}`, token)
	f.configure(map[string]string{"webEnabled": "false"})
	f.waitState("web", status.ModuleOff)
	f.waitAnswer(503, "/open", "", "")

	_, page, err := f.http("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, `starling_received_requests_total{code="201",hook="web/hooks/a.star:take",module="web"} 1`) {
		t.Errorf("metrics: %s", page)
	}
	all, err := f.process.Get(t.Context(), "hooks")
	if err != nil {
		t.Fatal(err)
	}
	noSecrets(t, append([]byte(page+f.said()), all...), token, chat)
}

// Of two processes the one that holds the Lease answers requests, whichever of them they come to. While the other one
// takes over they wait: each is answered by one run, or by two when the answer of the first was lost. Messages that have
// not arrived are sent by the one that takes over.
func TestRequestsGoToTheProcessThatLeads(t *testing.T) {
	t.Parallel()
	const token = "hush-forward-65"
	chat := newOutside(t)
	chat.fail = 1000
	f := newFixture(t, map[string]string{
		"web/module.star": `module(enabled = True, http = ["` + chat.address() + `"], grants = [grant("v1", "Secret", verbs = ["get"])])`,
		"web/hooks/a.star": `
def count(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    if n == 1:
        for word in ["old", "new"]:
            http.send("POST", "http://` + chat.address() + `/chat", body = word, key = "k")
    return reply(200, "request %d" % n)

hook(count, on = [http.receive("/count", secret = secret_ref("hook", "token"), rate = 1000)])
`,
	}, receiveRole)
	f.secret("hook", map[string]string{"token": token})
	f.start("--receive-address", "127.0.0.1:0")
	f.waitAnswer(200, "/count", "", token)
	first, second := f.process, f.other()
	second.waitReadyAs(false)
	if code, text := second.deliver("/count", "", token); code != 200 || text != "request 2" {
		t.Errorf("got %d %s, want the second request of both processes", code, text)
	}
	if code, text := second.deliver("/count", "", "other"); code != 401 {
		t.Errorf("a wrong signature: %d %s", code, text)
	}
	if code, text := second.deliver("/other", "", token); code != 404 {
		t.Errorf("another path: %d %s", code, text)
	}

	var senders sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		senders.Go(func() {
			for ctx.Err() == nil {
				code, text := second.deliver("/count", "", token)
				mu.Lock()
				answers[fmt.Sprint(code, " ", text)]++
				mu.Unlock()
			}
		})
	}
	many := func(more int) {
		t.Helper()
		mu.Lock()
		had := len(answers)
		mu.Unlock()
		f.eventually("requests are answered", func() error {
			mu.Lock()
			defer mu.Unlock()
			if len(answers) < had+more {
				return fmt.Errorf("there are %d answers, and were %d", len(answers), had)
			}
			return nil
		})
	}
	many(20)
	first.Kill()
	f.freeLease()
	second.waitReady()
	many(20)
	stop()
	senders.Wait()
	chat.mu.Lock()
	chat.fail, chat.got = 0, nil
	chat.mu.Unlock()
	f.eventually("the message of the first process arrives, of its key the last one", func() error {
		if heard := chat.heard(); len(heard) == 0 || heard[0] != "POST /chat new" {
			return fmt.Errorf("heard %q", heard)
		}
		return nil
	})
	for answer, n := range answers {
		if n > 1 || !strings.HasPrefix(answer, "200 request ") {
			t.Errorf("%d times: %s", n, answer)
		}
	}
}

// Hooks go to listed hosts, and to nowhere else; by way of the proxy that the environment names.
func TestRequestsGoToListedHostsOnly(t *testing.T) {
	t.Parallel()
	out, inside, proxy := newOutside(t), newOutside(t), newOutside(t)
	_, port, err := net.SplitHostPort(inside.address())
	if err != nil {
		t.Fatal(err)
	}
	get := func(name, url string) string {
		return "\ndef " + name + "(ctx):\n    values.set(\"" + name + "\", http.get(\"" + url + "\").json()[\"size\"])\n\nhook(" + name + ", on = [startup()])\n"
	}
	f := newFixture(t, trees(mirror("web", `module(enabled = True, http = ["`+out.address()+`", "*.example.com"])`), mirror("local", `module(enabled = True, http = ["localhost"])`), map[string]string{
		"web/hooks/a.star": get("listed", "http://"+out.address()+"/config") + get("redirected", "http://"+out.address()+"/away") +
			get("proxied", "http://api.example.com/config") + get("loopback", "http://127.0.0.1:"+port+"/config") + get("named", "http://localhost:"+port+"/config"),
		"local/hooks/a.star": get("named", "http://localhost:"+port+"/config"),
	}))
	f.env = []string{"HTTP_PROXY=http://" + proxy.address()} // which is not for this machine
	f.start()
	f.waitRuns("web/hooks/a.star:listed", 1)
	f.waitRuns("web/hooks/a.star:proxied", 1)
	f.waitRuns("local/hooks/a.star:named", 1)
	for hook, want := range map[string]string{
		"redirected": "GET http://" + out.address() + "/away: a redirect is not followed: the host unlisted.example is not listed",
		"loopback":   "the host 127.0.0.1:" + port + " is not listed",
		"named":      "the host localhost:" + port + " is not listed",
	} {
		f.eventually(hook+" fails", func() error {
			h, err := f.hook("web/hooks/a.star:" + hook)
			if err != nil {
				return err
			}
			return holds(h.LastError, []string{want})
		})
	}
	if heard := inside.heard(); len(heard) != 1 { // from the module that lists it
		t.Errorf("heard %q", heard)
	}
	if heard := proxy.heard(); len(heard) != 1 {
		t.Errorf("the proxy heard %q", heard)
	}
}

var builds = schema.GroupVersionResource{Group: "starling.dev", Version: "v1", Resource: "builds"}

// The promises of examples/http-receiver.
func TestHTTPReceiver(t *testing.T) {
	t.Parallel()
	const token, chat = "hush-webhook-63", "hush-chat-64"
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "builds.starling.dev", metav1.DeleteOptions{})
	})
	out := newOutside(t)
	f := copied(t, "http-receiver", "https://chat.example.com", out.URL, "chat.example.com", out.address()) // the chat is here
	f.grantPrinted()
	f.secret("builds", map[string]string{"webhook-secret": token, "chat-token": chat})
	f.start("--receive-address", "127.0.0.1:0")
	f.waitReady()

	commit := strings.Repeat("0123456789abcdef", 3)[:40]
	push := `{"ref": "refs/heads/main", "after": "` + commit + `", "repository": {"full_name": "acme/shop"}, "pusher": {"name": "ada"}}`
	f.eventually("the push becomes a Build", func() error { // the CRD may not be served yet
		if code, text := f.deliver("/github", push, token, "X-GitHub-Event", "push"); code != 201 || text != `{"build":"acme-shop-0123456789ab"}` {
			return fmt.Errorf("got %d %s", code, text)
		}
		return nil
	})
	o, err := shared.Dynamic.Resource(builds).Namespace(f.ns).Get(t.Context(), "acme-shop-0123456789ab", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(o.Object["spec"]), "map[branch:main commit:"+commit+" repository:acme/shop requestedBy:ada]"; got != want {
		t.Errorf("the Build is %s, want %s", got, want)
	}
	f.eventually("the chat hears of it", func() error {
		if heard := out.heard(); len(heard) != 1 || heard[0] != `POST /api/messages {"text":"build of acme/shop at 0123456789ab, for ada"}` {
			return fmt.Errorf("heard %q", heard)
		}
		return nil
	})
	for _, test := range []struct {
		body, event, secret string
		code                int
	}{
		{push, "push", "wrong", 401},
		{"{}", "ping", token, 200},
		{"{}", "issues", token, 202},
		{"{}", "push", token, 400},
		{"no json", "push", token, 400},
		{strings.ReplaceAll(push, commit, strings.Repeat("0", 40)), "push", token, 202},
		{strings.ReplaceAll(push, commit, "not hex, so refused by the schema"), "push", token, 500},
	} {
		if code, text := f.deliver("/github", test.body, test.secret, "X-GitHub-Event", test.event); code != test.code {
			t.Errorf("%s %s: got %d %s, want %d", test.event, test.body, code, text, test.code)
		}
	}
	if heard := out.heard(); len(heard) != 1 {
		t.Errorf("heard %q", heard)
	}
	noSecrets(t, []byte(f.said()), token, chat)
}
