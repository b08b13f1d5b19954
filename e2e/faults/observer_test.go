package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
)

// written is one write that the API server has carried out.
type written struct {
	version uint64
	by      int // a replica
	what    string
	lease   bool
	holder  string // of a Lease
	unsure  bool   // the API server has not said whether it was carried out
	began   time.Time
}

// writes are all writes of all replicas, as the proxy has seen them: their versions are of one history, so it is
// known who held the Lease as the API server took a write.
type writes struct {
	mu     sync.Mutex
	tokens map[string]int // the replica of each
	seen   []written
	last   uint64 // the highest version
}

// knows says of which replica a token is.
func (o *writes) knows(token string, replica int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens[token] = replica
}

// strike carries a write out, whatever becomes of its client meanwhile, and notes it.
func (o *writes) strike(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
	one := written{began: time.Now(), what: r.Method + " " + r.URL.Path, lease: proxy.Leases(r)}
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Header.Set("Accept", "application/json")
	again.Header.Set("Accept-Encoding", "identity")
	o.mu.Lock()
	before := o.last
	by, known := o.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	o.mu.Unlock()
	if one.by = by; !known {
		one.by = -1
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, again)
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			HolderIdentity string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if answer.Code < 300 && json.Unmarshal(answer.Body.Bytes(), &object) == nil && object.Metadata.ResourceVersion != "" && !r.URL.Query().Has("dryRun") {
		_, _ = fmt.Sscan(object.Metadata.ResourceVersion, &one.version)
		one.holder = object.Spec.HolderIdentity
		o.mu.Lock()
		if one.version > before { // else it has changed nothing
			o.seen, o.last = append(o.seen, one), max(o.last, one.version)
		}
		o.mu.Unlock()
	} else if one.lease && answer.Code >= 500 { // it may have been carried out
		one.version, one.unsure = before, true
		o.mu.Lock()
		o.seen = append(o.seen, one)
		o.mu.Unlock()
	}
	maps.Copy(w.Header(), answer.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// since is when another replica than this one has written first after a time; zero: not yet.
func (o *writes) since(began time.Time, by int) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.seen {
		if !w.lease && w.by != by && w.began.After(began) {
			return w.began
		}
	}
	return time.Time{}
}

// check fails for each write of a replica while another one held the Lease, or nobody.
func (o *writes) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.SortStableFunc(o.seen, func(a, b written) int { return cmp.Compare(a.version, b.version) })
	holder, name, unsure := -1, "", false
	for _, w := range o.seen {
		switch {
		case w.unsure:
			unsure = true
			continue
		case w.lease && w.holder == "":
			holder, name, unsure = -1, "", false
		case w.lease:
			holder, name, unsure = w.by, w.holder, false
		case w.by != holder && !unsure:
			t.Errorf("version %d: replica %d: %s, while replica %d has the Lease as %q", w.version, w.by, w.what, holder, name)
		}
	}
	t.Logf("%d writes", len(o.seen))
}

// observed gives each replica an account, and a line to the proxy, and notes what each writes.
func (w *world) observed() (seen *writes, lines []*cluster.Line) {
	w.t.Helper()
	seen = &writes{tokens: map[string]int{}}
	for i, r := range w.replicas {
		own := w.cluster.ServiceAccountKubeconfig(w.t, w.ns, account(i), cluster.Access{ClusterRoles: []string{"cluster-admin"}})
		file, token := as(w.t, w.kube, own)
		seen.knows(token, i)
		line, kube := cluster.NewLine(w.t, file)
		r.kube, lines = kube, append(lines, line)
		w.t.Cleanup(func() { r.signal(syscall.SIGCONT) }) // frozen, it does not hear that it shall end
	}
	w.note = seen.strike
	w.inject()
	return seen, lines
}

// account is the name of the ServiceAccount of a replica that is observed.
func account(replica int) string { return fmt.Sprint("replica-", replica) }

// as returns a copy of a kubeconfig file with the token of another one, and that token.
func as(t *testing.T, kubeconfig, other string) (file, token string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	from, err := clientcmd.LoadFromFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range from.AuthInfos {
		token = user.Token
	}
	for _, user := range config.AuthInfos {
		user.Token = token
	}
	file = t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file, token
}
