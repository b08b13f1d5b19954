package proxy

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// server is a small API server: a list has the objects 1 to 6, a watch tells of them and then of what is
// sent to it.
type server struct {
	asked atomic.Int64
	more  chan string
}

func line(typ string, n int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"metadata":{"name":"o%d","resourceVersion":"%d"}}}`, typ, n%3, n) + "\n"
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Token", r.Header.Get("Authorization"))
	if !Watches(r) {
		fmt.Fprintf(w, `{"answer":%d,"limit":%q}`, s.asked.Load(), r.URL.Query().Get("limit"))
		return
	}
	for n := range 6 {
		fmt.Fprint(w, line("ADDED", n+1))
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case text := <-s.more:
			fmt.Fprint(w, text)
		case <-r.Context().Done():
			return
		}
	}
}

// behind starts the server, and a proxy before it.
func behind(t *testing.T, seed uint64) (*server, *Proxy, func(method, path string) (*http.Response, error)) {
	t.Helper()
	s := &server{more: make(chan string)}
	api := httptest.NewUnstartedServer(s)
	api.EnableHTTP2 = true
	api.StartTLS()
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	k := clientcmdapi.NewConfig()
	k.Clusters["x"] = &clientcmdapi.Cluster{Server: api.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})}
	k.AuthInfos["x"] = &clientcmdapi.AuthInfo{Token: "secret"}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	k.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
	p, by := New(t, file, seed)
	config, err := clientcmd.BuildConfigFromFlags("", by)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, p, func(method, path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, config.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return client.Do(r)
	}
}

const (
	list  = "/api/v1/configmaps?limit=500"
	watch = "/api/v1/configmaps?watch=true&resourceVersion=1"
)

// text is the answer to a request, "cut" where there is none, or the code with what it says.
func text(resp *http.Response, err error) string {
	if err != nil {
		return "cut"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprintf("%d %s cut", resp.StatusCode, body)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

func TestWhatPasses(t *testing.T) {
	s, p, ask := behind(t, 1)
	resp, err := ask("GET", list)
	if err != nil || resp.Header.Get("Token") != "Bearer secret" {
		t.Errorf("%+v, %v", resp, err)
	}
	if got := text(resp, err); got != `200 {"answer":1,"limit":"500"}` {
		t.Error(got)
	}
	if p.Requests() != 1 || s.asked.Load() != 1 || p.Told() != "1 requests" {
		t.Error(p.Told())
	}
}

func TestFaultsOfRequests(t *testing.T) {
	for _, c := range []struct {
		name    string
		strike  Striker
		want    string
		reaches int64
	}{
		{"429", Refuse(429, metav1.StatusReasonTooManyRequests, "later", 7*time.Second),
			`429 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"later","reason":"TooManyRequests","code":429}` + "\n", 0},
		{"page", Page(502), `502 <html><body><h1>Bad Gateway</h1></body></html>`, 0},
		{"abort", Abort, "cut", 0},
		{"unanswered", Unanswered, "cut", 1},
		{"late", Late(time.Millisecond, 2*time.Millisecond), `200 {"answer":1,"limit":"500"}`, 1},
		{"late answer", LateAnswer(time.Millisecond, 2*time.Millisecond), `200 {"answer":1,"limit":"500"}`, 1},
		{"slow", Slow(4, time.Millisecond), `200 {"answer":1,"limit":"500"}`, 1},
		{"small pages", SmallPages(2), `200 {"answer":1,"limit":"2"}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p, ask := behind(t, 1)
			p.Inject(Fault{Name: "x", Strike: c.strike})
			resp, err := ask("DELETE", list) // client-go tries a GET again
			if err == nil && c.name == "429" && resp.Header.Get("Retry-After") != "7" {
				t.Errorf("%v", resp.Header)
			}
			if got := text(resp, err); got != c.want || s.asked.Load() != c.reaches || p.Struck("x") != 1 {
				t.Errorf("%q, %d requests have reached the server, %s", got, s.asked.Load(), p.Told())
			}
		})
	}
}

func TestWrongBytesAreNoJSON(t *testing.T) {
	_, p, ask := behind(t, 1)
	p.Inject(Fault{Name: "x", Strike: WrongBytes})
	kinds := map[string]bool{}
	for range 20 {
		got := text(ask("GET", list))
		_, body, _ := strings.Cut(got, " ")
		if json.Valid([]byte(body)) {
			t.Errorf("valid: %q", got)
		}
		kinds[body[:1]+body[len(body)-1:]] = true
	}
	if len(kinds) < 3 {
		t.Errorf("%v", kinds)
	}
}

func TestAStaleList(t *testing.T) {
	_, p, ask := behind(t, 1)
	p.Inject(Fault{Name: "x", On: Lists, Strike: Stale()})
	for _, want := range []string{"1", "1", "2"} {
		if got := text(ask("GET", list)); got != `200 {"answer":`+want+`,"limit":"500"}` {
			t.Errorf("%q, want %s", got, want)
		}
	}
}

// The lots depend on the seed and on how many requests of a kind there were, and on nothing else.
func TestTheSeedSaysWhatIsStruck(t *testing.T) {
	run := func(seed uint64, paths ...string) (struck []string) {
		_, p, ask := behind(t, seed)
		p.Inject(Fault{Name: "x", Percent: 30, Strike: Page(500)})
		for n := range 20 {
			for _, path := range paths {
				if got := text(ask("DELETE", path)); strings.HasPrefix(got, "500") && path == paths[0] {
					struck = append(struck, fmt.Sprint(n))
				}
			}
		}
		return struck
	}
	once := run(7, "/api/v1/namespaces/a/secrets")
	if again := run(7, "/api/v1/namespaces/b/secrets", "/api/v1/nodes"); !slices.Equal(once, again) {
		t.Errorf("%v, then %v", once, again)
	}
	if other := run(8, "/api/v1/namespaces/a/secrets"); slices.Equal(once, other) || len(once) == 0 || len(once) > 15 {
		t.Errorf("%v with one seed, %v with another", once, other)
	}
}

func TestWhichRequests(t *testing.T) {
	for _, c := range []struct{ request, is string }{
		{"GET /api/v1/configmaps?limit=500", "lists"},
		{"GET /api/v1/configmaps?limit=500&continue=x", "lists continues"},
		{"GET /api/v1/configmaps/x", ""},
		{"GET /api/v1/configmaps?watch=true", "watches"},
		{"GET /api/v1/configmaps?watch=1&resourceVersion=5", "watches resumes"},
		{"GET /api/v1/configmaps?watch=true&resourceVersion=5&sendInitialEvents=true", "watches streams"},
		{"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/x", "writes leases"},
		{"GET /apis/coordination.k8s.io/v1/namespaces/a/leases/x", "leases"},
	} {
		method, url, _ := strings.Cut(c.request, " ")
		r := httptest.NewRequest(method, url, nil)
		var is []string
		for _, s := range []struct {
			name string
			on   func(*http.Request) bool
		}{{"lists", Lists}, {"continues", Continues}, {"watches", Watches}, {"resumes", Resumes}, {"streams", Streams}, {"writes", Writes}, {"leases", Leases}} {
			if s.on(r) {
				is = append(is, s.name)
			}
		}
		if got := strings.Join(is, " "); got != c.is {
			t.Errorf("%s is %q, want %q", c.request, got, c.is)
		}
		if But(nil, Leases)(r) == Leases(r) || But(Writes, Leases)(r) != (Writes(r) && !Leases(r)) {
			t.Errorf("%s: But is wrong", c.request)
		}
	}
}

// versions are those of the events of a watch until it ends, with how it does.
func versions(t *testing.T, resp *http.Response, err error) (seen []string, end string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for from := bufio.NewReader(resp.Body); ; {
		text, err := from.ReadString('\n')
		var e struct {
			Type   string
			Object struct {
				Metadata struct{ ResourceVersion string }
				Code     int
			}
		}
		switch {
		case err == io.EOF && text == "":
			return seen, "over"
		case err != nil:
			return seen, "cut after " + text
		case json.Unmarshal([]byte(text), &e) != nil:
			seen = append(seen, "garbage")
		case e.Type == "ERROR":
			seen = append(seen, fmt.Sprint(e.Object.Code))
		default:
			seen = append(seen, e.Object.Metadata.ResourceVersion)
		}
	}
}

// Each manner shows some of its kind in one of its lives, which last longer each time, and what it tells is
// what it may tell.
func TestMannersOfWatches(t *testing.T) {
	all := []string{"1", "2", "3", "4", "5", "6"}
	twice := []string{"1", "1", "2", "2", "3", "3", "4", "4", "5", "5", "6", "6"}
	begins := func(seen, of []string) bool { return len(seen) <= len(of) && slices.Equal(seen, of[:len(seen)]) }
	in := func(seen []string, end string) bool { return begins(seen, all) }
	short := func(seen []string, end string) bool { return len(seen) > 0 && len(seen) < 6 }
	without := func(what string) func([]string, string) bool {
		return func(seen []string, end string) bool {
			at := slices.Index(seen, what)
			return begins(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s == what }), all) && (at < 0 || at >= len(seen)-2)
		}
	}
	has := func(what string) func([]string, string) bool {
		return func(seen []string, end string) bool { return slices.Contains(seen, what) && end == "over" }
	}
	for _, c := range []struct {
		manner     Manner
		may, shows func(seen []string, end string) bool
	}{
		{Plain, in, func(seen []string, end string) bool { return slices.Equal(seen, all) && end == "over" }},
		{Plain, in, func(seen []string, end string) bool { return slices.Equal(seen, all) && end != "over" }},
		{Delayed, in, func(seen []string, end string) bool { return slices.Equal(seen, all) }},
		{Doubled, func(seen []string, end string) bool { return begins(seen, twice) }, func(seen []string, end string) bool { return slices.Equal(seen, twice) }},
		{Repeated, func(seen []string, end string) bool { return begins(firsts(seen), all) }, func(seen []string, end string) bool { return len(seen) > 6 }},
		{Swapped, func(seen []string, end string) bool { return len(firsts(seen)) == len(seen) },
			func(seen []string, end string) bool {
				return slices.Equal(seen, []string{"2", "1", "4", "3", "6", "5"})
			}},
		{Halved, in, func(seen []string, end string) bool { return strings.Contains(end, "type") }},
		{Garbled, without("garbage"), has("garbage")},
		{Deaf, in, short},
		{Silent, in, short},
		{Lossy, func(seen []string, end string) bool {
			return begins(seen, all) || slices.Contains(seen, "410") || end != "over"
		}, has("410")},
		{Forgetful, without("410"), has("410")},
	} {
		t.Run(c.manner.Name, func(t *testing.T) {
			t.Parallel()
			_, p, ask := behind(t, 3)
			for life, n := 50*time.Millisecond, 0; ; n++ {
				p.Inject(Fault{Name: "x", On: Watches, Strike: Life(life, life, c.manner)})
				resp, err := ask("GET", watch)
				seen, end := versions(t, resp, err)
				if !c.may(seen, end) {
					t.Fatalf("it tells %v, and is %s", seen, end)
				}
				if c.shows(seen, end) {
					break
				}
				if n == 40 {
					t.Fatalf("never: %s", p.Told())
				}
				if n%4 == 3 {
					life = min(2*life, 10*time.Second)
				}
			}
		})
	}
}

// firsts are the events without those that were told before.
func firsts(seen []string) (out []string) {
	for _, s := range seen {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// An event of the same object never overtakes another one, and one that waits alone is told.
func TestSwappedEventsOfOneObject(t *testing.T) {
	s, p, ask := behind(t, 1)
	p.Inject(Fault{Name: "x", On: Watches, Strike: Life(time.Minute, time.Minute, Swapped)})
	resp, err := ask("GET", watch)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	from := bufio.NewReader(resp.Body)
	next := func() string {
		text, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for range 6 {
		next()
	}
	for _, c := range [][2]string{{line("MODIFIED", 7), line("DELETED", 10)}, {line("MODIFIED", 11), `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}` + "\n"}} {
		s.more <- c[0] + c[1]
		if got := next() + next(); got != c[0]+c[1] {
			t.Errorf("it tells %s", got)
		}
	}
	alone := line("MODIFIED", 13)
	if s.more <- alone; next() != alone {
		t.Error("it tells another one")
	}
}

func TestCut(t *testing.T) {
	s, p, ask := behind(t, 1)
	resp, err := ask("GET", watch)
	if err != nil {
		t.Fatal(err)
	}
	p.Cut(Watches)
	if seen, end := versions(t, resp, err); end == "over" {
		t.Errorf("%v %s", seen, end)
	}
	if got := text(ask("GET", list)); got != `200 {"answer":2,"limit":"500"}` || s.asked.Load() != 2 {
		t.Error(got)
	}
}
