package faults

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// replica is one process of the instance, and those that have followed it in its place. A test may change
// its fields before it is started.
type replica struct {
	*cluster.Starling // nil before the first start
	world             *world
	kube              string
	args, env         []string
	memory            *cluster.MemoryGroup
	folder            string // its state folder; "": a new one
	forgets           bool   // each process has a new one: kills of the test do not quarantine a hook
	modules           string // its module tree; "": that of the world
	starts            int
	started           time.Time
}

// start starts the process, or another one in the place of one that has ended, as a kubelet does.
func (r *replica) start() {
	r.world.t.Helper()
	o := cluster.Options{Modules: cmp.Or(r.modules, r.world.modules), Namespace: r.world.ns, Kubeconfig: r.kube, Args: r.args, Env: r.env, Memory: r.memory, StateDir: r.folder}
	if r.Starling != nil && !r.forgets {
		o.StateDir = r.StateDir
	}
	r.Starling = r.world.cluster.Starling(r.world.t, o)
	r.starts, r.started = r.starts+1, time.Now()
}

// status asks the process through its socket.
func (r *replica) status() (status.Status, error) {
	socket := filepath.Join(r.StateDir, "admin", "starling.sock")
	return admin.NewClient(admin.ClientOptions{Socket: socket}).Status(r.world.t.Context())
}

// page is what the process answers at a path.
func (r *replica) page(path string) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(r.world.t.Context(), http.MethodGet, "http://"+r.Address()+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// metric is the sum of all series that a pattern of a name, with labels or without, is for.
func (r *replica) metric(name string) (sum float64, err error) {
	_, page, err := r.page("/metrics")
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(page, -1) {
		n, bad := strconv.ParseFloat(m[1], 64)
		sum, err = sum+n, errors.Join(err, bad)
	}
	return sum, err
}

// census is how much a process holds.
type census struct{ goroutines, descriptors, memory float64 }

func (r *replica) census() (c census, err error) {
	for name, into := range map[string]*float64{"go_goroutines": &c.goroutines, "process_open_fds": &c.descriptors, "process_resident_memory_bytes": &c.memory} {
		n, wrong := r.metric(name)
		*into, err = n, errors.Join(err, wrong)
	}
	return c, err
}

// String implements [fmt.Stringer].
func (c census) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.0f MiB", c.goroutines, c.descriptors, c.memory/(1<<20))
}

// noMore waits until a process holds no more than before; a few goroutines and connections come and go.
func (r *replica) noMore(before census) (now census) {
	r.world.t.Helper()
	r.world.eventually("it holds no more than before", func() (err error) {
		if now, err = r.census(); err == nil && (now.goroutines > before.goroutines*1.1+10 || now.descriptors > before.descriptors+5) {
			err = fmt.Errorf("%s, before it was %s", now, before)
		}
		return err
	})
	return now
}

// start starts all replicas.
func (w *world) start() {
	w.t.Helper()
	for _, r := range w.replicas {
		r.start()
	}
}

// starts is how many processes there have been.
func (w *world) starts() (n int) {
	for _, r := range w.replicas {
		n += r.starts
	}
	return n
}

// revive does what a kubelet does, which lets some time pass between two starts.
func (w *world) revive() {
	for _, r := range w.replicas {
		if r.Starling != nil && !r.Alive() && time.Since(r.started) > time.Second {
			r.start()
		}
	}
}

// eventually waits until check is nil, and does what a kubelet does meanwhile.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	cluster.Eventually(w.t, soon, what, func() error {
		w.revive()
		return check()
	})
}

// leader is the replica that leads, as it says itself; of one replica that one.
func (w *world) leader() (*replica, status.Status, error) {
	var st status.Status
	var wrong []error
	for _, r := range w.replicas {
		var err error
		if st, err = r.status(); len(w.replicas) == 1 || err == nil && st.Leader {
			return r, st, err
		}
		wrong = append(wrong, err)
	}
	return nil, st, errors.Join(append(wrong, errors.New("no replica leads"))...)
}

// status is that of the replica that leads.
func (w *world) status() (status.Status, error) {
	_, st, err := w.leader()
	return st, err
}
