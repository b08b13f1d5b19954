package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// An instance of these tests has two processes, as deploy/ has two replicas. One leads, and is the one that a test
// asks; the other one stands by, with a state folder and ports for itself. Where a test ends the first one and starts
// the instance again, the other one takes over, and another process takes its place. As the test ends the one that
// stands by has to know all that the one that leads knows.

// alone says that there is one process of the instance, and why.
func (f *fixture) alone(why string) *fixture {
	f.single = why
	return f
}

// start runs the instance. A process has the state folder of the one before it.
func (f *fixture) start(args ...string) {
	f.t.Helper()
	switch f.succeed(); {
	case f.process == nil || !f.process.Alive():
		f.args = args
		f.process = f.run(f.process, 0)
	case !slices.Equal(args, f.args):
		f.t.Fatalf("the process that takes over runs with %q, and not %q: stop the instance first", f.args, args)
	}
	if f.single != "" || !f.leads() {
		return
	}
	f.standby = f.run(f.standby, 1)
	standby := f.standby
	f.t.Cleanup(func() {
		if f.standby == standby && !f.t.Failed() {
			f.whole()
		}
	})
}

// succeed has the process that stands by be the one that tests ask, once the one before it has ended.
func (f *fixture) succeed() {
	if f.standby == nil || !f.standby.Alive() || f.process.Alive() {
		return
	}
	f.swap()
}

// swap has the other process be the one that tests ask.
func (f *fixture) swap() {
	f.process, f.standby = f.standby, f.process
	if f.service != nil {
		slices.Reverse(f.addresses)
		f.service.Lead(f.addresses[0])
	}
}

// follow has the process that leads be the one that tests ask. It is an error if none does.
func (f *fixture) follow() error {
	for range 2 {
		if st, err := f.status(); err == nil && st.Leader {
			return nil
		}
		if f.standby != nil && f.standby.Alive() && f.process.Alive() {
			f.swap()
		}
	}
	return errors.New("none leads")
}

// stop ends the instance: nobody takes over.
func (f *fixture) stop() {
	f.t.Helper()
	if s := f.standby; s != nil {
		if code := s.Stop(); code != 0 && s.Output() != "" { // one that says nothing was told before it had begun
			f.t.Fatalf("the process that stands by stopped with exit code %d", code)
		}
	}
	if code := f.process.Stop(); code != 0 {
		f.t.Fatalf("stopped with exit code %d", code)
	}
}

// leads waits until the process leads; it returns false when the process has ended before.
func (f *fixture) leads() (leads bool) {
	f.t.Helper()
	f.eventually("a process leads", func() error {
		st, err := f.status()
		if !f.process.Alive() {
			return nil
		}
		if leads = err == nil && st.Leader; !leads {
			return fmt.Errorf("it does not: %v", err)
		}
		return nil
	})
	return leads
}

// run starts a process in the place of one that has ended, nil for none. With STARLING_OLDER in the environment each
// second process is that binary: so two versions lead in turn, and stand by for each other, as in a rollout.
func (f *fixture) run(before *cluster.Starling, n int) *cluster.Starling {
	f.t.Helper()
	o := cluster.Options{Modules: f.modules, Namespace: f.ns, Name: f.name, Kubeconfig: f.kube, Args: f.flags(n), Env: f.env, ModuleObjects: f.objects}
	if before != nil {
		o.StateDir = before.StateDir
	}
	if len(f.ran)%2 == 1 {
		o.Program = os.Getenv("STARLING_OLDER")
	}
	p := f.cluster().Starling(f.t, o)
	f.ran = append(f.ran, p)
	return p
}

// flags are those of the nth process. Each has an address for the API server, which asks the one that leads, by an
// address that stays.
func (f *fixture) flags(n int) []string {
	const listens, asked = "--webhook-address=", "--webhook-url=https://"
	i := slices.IndexFunc(f.args, func(arg string) bool { return strings.HasPrefix(arg, listens) })
	if i < 0 || f.single != "" {
		return f.args
	}
	address := strings.TrimPrefix(f.args[i], listens)
	if f.service == nil {
		f.service = cluster.Balance(f.t)
		f.addresses = []string{address, strings.TrimPrefix(webhookArgs(f.t)[0], listens)}
		f.service.Lead(address)
	}
	args := slices.Clone(f.args)
	args[i] = listens + f.addresses[n]
	if j := slices.Index(args, asked+address); j >= 0 {
		args[j] = asked + f.service.Address()
	}
	return args
}

// other is the process that stands by, to be asked as the one that leads.
func (f *fixture) other() *fixture {
	o := *f
	o.process, o.standby, o.single = f.standby, nil, "it is one of two"
	return &o
}

// said is all that processes of the instance have printed.
func (f *fixture) said() string {
	var all strings.Builder
	for _, p := range f.ran {
		all.WriteString(p.Output())
	}
	return all.String()
}

// whole checks that the process that stands by knows what the one that leads knows. One whose leader has ended has
// taken over, or is about to.
func (f *fixture) whole() {
	f.t.Helper()
	switch {
	case !f.standby.Alive() && !f.process.Alive(): // the test has ended both
	case !f.standby.Alive():
		f.t.Error("the process that stands by has ended")
	case f.process.Alive():
		f.eventually("the process that stands by knows what the one that leads knows", f.same)
		f.onlyTheirs()
	}
}

// onlyTheirs checks that the process that stands by has logged no error but what the one that leads has logged too,
// how it has found the tree, and that the API server was slow: each looks at another moment, and counts for itself.
func (f *fixture) onlyTheirs() {
	f.t.Helper()
	theirs := errorsOf(f.process.Output())
	for text := range errorsOf(f.standby.Output()) {
		own := strings.Contains(text, "the module tree") || strings.Contains(text, "did not answer in time")
		if !theirs[text] && !own {
			f.t.Errorf("the process that stands by has an error for itself: %s", text)
		}
	}
}

// errorsOf are the lines of a log that tell of errors, without their times.
func errorsOf(log string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(log) {
		var said map[string]any
		if json.Unmarshal([]byte(line), &said) != nil {
			out[line] = true
		} else if said["level"] != "info" && said["level"] != "warn" && said["level"] != "debug" {
			out[fmt.Sprint(said["module"], " ", said["hook"], ": ", said["message"], " ", said["error"])] = true
		}
	}
	return out
}

// known is what is compared of two processes.
type known struct {
	Config       status.Config
	ReloadFailed string
	Modules      map[string]string            // what is said of the module, by name
	Values       map[string]map[string]string // in force, by module and path
	Hooks        map[string]string            // what is said of the hook, by id
}

// same is nil when the process that stands by knows what the one that leads knows.
func (f *fixture) same() error {
	led, err := ask(f.process)
	stood, wrong := ask(f.standby)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	switch {
	case !led.status.Leader || stood.status.Leader:
		return fmt.Errorf("they lead: %t and %t", led.status.Leader, stood.status.Leader)
	case !stood.status.Ready:
		return errors.New("it is not ready")
	}
	for i := range led.status.Modules {
		for j := range stood.status.Modules {
			l, s := &led.status.Modules[i], &stood.status.Modules[j]
			if l.Name == s.Name && l.Config.Generation == 0 { // its object asks for nothing: the one that has made it need not hear of it
				s.Config.Generation = 0
			}
		}
	}
	if diff := cmp.Diff(led.known(stood.status), stood.known(stood.status)); diff != "" {
		return fmt.Errorf("they differ (-leads +stands by):\n%s", diff)
	}
	return nil
}

// answer is what one process says of itself.
type answer struct {
	status status.Status
	values map[string]map[string]string
}

// ask asks a process; the context of the test has ended.
func ask(p *cluster.Starling) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := admin.NewClient(admin.ClientOptions{Socket: filepath.Join(p.StateDir, "admin", "starling.sock")})
	if a.status, err = client.Status(ctx); err != nil {
		return a, err
	}
	a.values = map[string]map[string]string{}
	modules := []string{"global"}
	for _, m := range a.status.Modules {
		modules = append(modules, m.Name)
	}
	for _, name := range modules {
		x, err := client.Explain(ctx, name)
		if err != nil {
			continue // it is not in the tree
		}
		a.values[name] = map[string]string{}
		for _, e := range x.Values {
			data, _ := json.Marshal(e.Value)
			a.values[name][e.Path] = fmt.Sprintf("%s removed:%t secret:%t", data, e.Removed, e.Secret)
		}
	}
	return a, nil
}

// standsBy is the reason of a module that runs where the Lease is.
const standsBy = "this starling stands by; the one that holds the lease works"

// known is what has to be the same in both processes. How far a module has come that runs is known by the one that
// leads alone.
func (a answer) known(stood status.Status) known {
	out := known{
		Config: a.status.Config, Values: a.values, Modules: map[string]string{}, Hooks: map[string]string{},
	}
	if failed := a.status.ReloadFailed; failed != nil {
		out.ReloadFailed = failed.Reason
	}
	runs := map[string]bool{}
	for _, m := range stood.Modules {
		runs[m.Name] = m.State == status.ModuleWaiting && m.Reason == standsBy
	}
	for _, m := range a.status.Modules {
		state := string(m.State)
		if runs[m.Name] && m.State != status.ModuleOff && m.State != status.ModuleBroken {
			state = "runs"
		}
		out.Modules[m.Name] = fmt.Sprintf("%s, enabled %t, config %+v", state, m.Enabled, m.Config)
	}
	for _, h := range a.status.Hooks {
		out.Hooks[h.ID] = "off"
		if h.State != status.HookOff {
			out.Hooks[h.ID] = fmt.Sprintf("on, snapshots %v, not served %q", h.Snapshots, h.NotServed)
		}
	}
	return out
}
