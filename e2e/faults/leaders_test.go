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
	began   time.Time
}

// writes are all writes of all replicas, as the proxy has seen them: their versions are of one history, so it is
// known who held the Lease as the API server took a write.
type writes struct {
	tokens []string // of replicas

	mu   sync.Mutex
	seen []written
	last uint64 // the highest version
}

// strike carries a write out, whatever becomes of its client meanwhile, and notes it.
func (o *writes) strike(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
	one := written{began: time.Now(), what: r.Method + " " + r.URL.Path, lease: proxy.Leases(r)}
	one.by = slices.IndexFunc(o.tokens, func(token string) bool { return r.Header.Get("Authorization") == "Bearer "+token })
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Header.Set("Accept", "application/json")
	again.Header.Set("Accept-Encoding", "identity")
	o.mu.Lock()
	before := o.last
	o.mu.Unlock()
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
	holder, name := -1, ""
	for _, w := range o.seen {
		switch {
		case w.lease && w.holder == "":
			holder, name = -1, ""
		case w.lease:
			holder, name = w.by, w.holder
		case w.by != holder:
			t.Errorf("version %d: replica %d: %s, while replica %d has the Lease as %q", w.version, w.by, w.what, holder, name)
		}
	}
	t.Logf("%d writes", len(o.seen))
}

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

// misfortunes are what becomes of a process that leads.
var misfortunes = []struct {
	name  string
	begin func(*replica, *cluster.Line)
}{
	{"stopped", func(r *replica, _ *cluster.Line) { r.signal(syscall.SIGTERM) }},
	{"killed", func(r *replica, _ *cluster.Line) { r.Kill() }},
	{"frozen", func(r *replica, _ *cluster.Line) { r.signal(syscall.SIGSTOP) }},
	{"cut off", func(_ *replica, l *cluster.Line) { l.Cut() }},
	{"not heard", func(_ *replica, l *cluster.Line) { l.Stall(cluster.Up) }},
	{"deaf", func(_ *replica, l *cluster.Line) { l.Stall(cluster.Down) }},
}

func (r *replica) signal(s syscall.Signal) { _ = syscall.Kill(r.PID(), s) } // it may have ended

// Row 9: whatever becomes of the process that leads, no two write, and another one goes on with its work.
func TestNeverTwoWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{replicas: 2})
	seen, lines := &writes{}, []*cluster.Line{}
	for i, r := range w.replicas {
		account := w.cluster.ServiceAccountKubeconfig(t, w.ns, fmt.Sprint("replica-", i), cluster.Access{ClusterRoles: []string{"cluster-admin"}})
		file, token := as(t, w.kube, account)
		line, kube := cluster.NewLine(t, file)
		r.kube, lines, seen.tokens = kube, append(lines, line), append(seen.tokens, token)
		t.Cleanup(func() { r.signal(syscall.SIGCONT) }) // frozen, it does not hear that it shall end
	}
	w.note = seen.strike
	w.inject()
	w.begin()

	took := map[string][]time.Duration{}
	order := w.dice.Perm(len(misfortunes))
	for round := range rounds {
		if !long {
			order = []int{1, 2, 3 + w.dice.IntN(3)}
		}
		for _, which := range order {
			now, what := -1, misfortunes[which]
			w.eventually("one leads, and the other one stands by", func() error {
				leads, _, err := w.leader()
				if err != nil {
					return err
				}
				now = slices.Index(w.replicas, leads)
				_, err = w.replicas[1-now].status()
				return err
			})
			began := time.Now()
			what.begin(w.replicas[now], lines[now])
			next := time.Time{}
			for next = seen.since(began, now); next.IsZero(); next = seen.since(began, now) {
				if time.Since(began) > soon {
					t.Fatalf("%s: nobody writes", what.name)
				}
				w.change()
				time.Sleep(50 * time.Millisecond)
			}
			took[what.name] = append(took[what.name], next.Sub(began))
			if long && what.name == "frozen" {
				for time.Since(began) < 30*time.Second {
					w.changes(5)
				}
			}
			w.replicas[now].signal(syscall.SIGCONT)
			lines[now].Cut() // what a stall has held back is lost, as its connection is
			lines[now].Mend()
			w.changes(5)
			w.settle()
		}
		t.Logf("round %d is over", round)
	}
	seen.check(t)
	var told []string
	for _, what := range slices.Sorted(maps.Keys(took)) {
		slices.Sort(took[what])
		told = append(told, fmt.Sprintf("%s %s (at most %s)", what, took[what][len(took[what])/2].Round(10*time.Millisecond), took[what][len(took[what])-1].Round(10*time.Millisecond)))
	}
	t.Logf("seed %d, until another process had written: %s", seed, strings.Join(told, ", "))
}
