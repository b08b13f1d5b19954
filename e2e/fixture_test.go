package e2e

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-operator/starling/e2e/balancer"
	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

// fixture is one instance: its namespace, tree and role, and the processes that run.
type fixture struct {
	t       *testing.T
	own     *cluster.Cluster // its own control plane; nil: the shared one
	ns      string           // the operator's; modules are released there when they name none
	name    string
	modules string
	kube    string // kubeconfig of its ServiceAccount
	single  string // why it has one process; "": it has two
	probes  int    // events sent through it
	env     []string
	objects bool // it keeps Module objects, so no other test has modules of these names

	args      []string            // more flags of the processes
	process   *cluster.Starling   // the one that leads, or is about to
	standby   *cluster.Starling   // nil: there was none yet
	ran       []*cluster.Starling // all that have run
	service   *balancer.Balancer  // what the API server asks; nil: no hook answers it
	addresses []string            // where the two answer the API server
}

// newFixture makes an instance with the files of the tree, by their paths; "$NS" in
// them is its namespace. Its role is [mirrors] unless role says otherwise.
func newFixture(t *testing.T, files map[string]string, role ...least) *fixture {
	t.Helper()
	return (&fixture{t: t, ns: shared.Namespace(t)}).beside("starling", files, role...)
}

// newFixtureOn makes an instance on this control plane.
func newFixtureOn(t *testing.T, c *cluster.Cluster, files map[string]string, role ...least) *fixture {
	t.Helper()
	return (&fixture{t: t, own: c, ns: c.Namespace(t)}).beside("starling", files, role...)
}

// beside makes another instance, with this name, in the namespace of f.
func (f *fixture) beside(name string, files map[string]string, role ...least) *fixture {
	f.t.Helper()
	other := &fixture{t: f.t, own: f.own, ns: f.ns, name: name, modules: f.t.TempDir()}
	other.write(files)
	other.grant(role...)
	return other
}

// cluster is the control plane that it runs on.
func (f *fixture) cluster() *cluster.Cluster {
	if f.own != nil {
		return f.own
	}
	return shared
}

// example makes an instance that runs one of our examples, with the rights that
// `starling rbac` prints for it.
func example(t *testing.T, name string) *fixture {
	t.Helper()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: filepath.Join("..", "examples", name)}
	f.grantPrinted()
	return f
}

// copied makes an instance that runs one of our examples with other texts in the place of some: old, new,
// old, new. It has no rights yet.
func copied(t *testing.T, name string, oldnew ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	files, root := map[string]string{}, filepath.Join("..", "examples", name)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "README.md" {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		files[rel] = strings.NewReplacer(oldnew...).Replace(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.write(files)
	return f
}

func (f *fixture) grant(role ...least) {
	f.t.Helper()
	l := mirrors
	if len(role) > 0 {
		l = role[0]
	}
	f.kube = f.cluster().ServiceAccountKubeconfig(f.t, f.ns, "op-"+f.name, l.access(f.ns, f.name))
}

// write puts files into the module tree; an empty text removes the file or folder. A
// process that watches the tree sees each file, and each new module, whole or not at all.
func (f *fixture) write(files map[string]string) {
	f.t.Helper()
	aside := f.t.TempDir()
	var err error
	do := func(step error) { err = cmp.Or(err, step) }
	fresh := map[string]bool{} // modules that are not there yet
	for name, text := range files {
		path := filepath.Join(f.modules, name)
		if text == "" {
			if step := os.Rename(path, filepath.Join(aside, "gone")); !os.IsNotExist(step) {
				do(step)
			}
			do(os.RemoveAll(filepath.Join(aside, "gone")))
			continue
		}
		top, _, deep := strings.Cut(name, "/")
		target := filepath.Join(aside, "file")
		if _, missing := os.Stat(filepath.Join(f.modules, top)); deep && missing != nil {
			fresh[top], target = true, filepath.Join(aside, "new", name)
		}
		do(os.MkdirAll(filepath.Dir(target), 0o755))
		do(os.WriteFile(target, []byte(strings.ReplaceAll(text, "$NS", f.ns)), 0o644))
		if !fresh[top] {
			do(os.MkdirAll(filepath.Dir(path), 0o755))
			do(os.Rename(target, path))
		}
	}
	for top := range fresh {
		do(os.MkdirAll(f.modules, 0o755))
		do(os.Rename(filepath.Join(aside, "new", top), filepath.Join(f.modules, top)))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// program is the starling that the tests run.
func program() string {
	if name := os.Getenv("STARLING_BIN"); name != "" {
		return name
	}
	return filepath.Join("..", "bin", "starling")
}

// restart ends the process and starts the instance again: the one that stands by takes over. For other files, or
// other flags, both end first: one that runs would have taken some of the files into force already.
func (f *fixture) restart(files ...map[string]string) {
	f.t.Helper()
	if len(files) > 0 || len(f.args) > 0 {
		f.stop()
	} else if code := f.process.Stop(); code != 0 {
		f.t.Fatalf("stopped with exit code %d", code)
	}
	f.write(trees(files...))
	f.start()
}

// status asks the process through its socket.
func (f *fixture) status() (status.Status, error) {
	socket := filepath.Join(f.process.StateDir, "admin", "starling.sock")
	return admin.NewClient(admin.ClientOptions{Socket: socket}).Status(f.t.Context())
}

// module returns the status of one module.
func (f *fixture) module(name string) (status.Module, error) {
	st, err := f.status()
	if err != nil {
		return status.Module{}, err
	}
	for _, m := range st.Modules {
		if m.Name == name {
			return m, nil
		}
	}
	return status.Module{}, fmt.Errorf("module %s is not in the status %+v", name, st)
}

// hook returns the status of one hook; id is as "web/hooks/a.star:run".
func (f *fixture) hook(id string) (status.Hook, error) {
	st, err := f.status()
	if err != nil {
		return status.Hook{}, err
	}
	var ids []string
	for _, h := range st.Hooks {
		if h.ID == id {
			return h, nil
		}
		ids = append(ids, h.ID)
	}
	return status.Hook{}, fmt.Errorf("hook %s is not in the status, which has %v", id, ids)
}

// eventually waits until check returns nil. Meanwhile the process that tests ask may lose the Lease to the other one: on
// a busy machine it may come too late to renew it.
func (f *fixture) eventually(what string, check func() error) {
	f.t.Helper()
	looks := 0
	cluster.Eventually(f.t, soon, what, func() error {
		err := check()
		if looks++; err != nil && looks%20 == 0 {
			_ = f.follow()
		}
		return err
	})
}

// waitState waits until a module is in a state and its reason, errors and problems
// hold all the texts, and returns it.
func (f *fixture) waitState(name string, want status.ModuleState, texts ...string) (m status.Module) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("module %s is %s", name, want), func() (err error) {
		if m, err = f.module(name); err != nil {
			return err
		}
		if m.State != want {
			return fmt.Errorf("it is %s: %s", m.State, m.Reason)
		}
		all := m.Reason + "\n" + m.LastError + "\n" + strings.Join(m.Problems, "\n")
		return holds(all, texts)
	})
	return m
}

// waitConfig waits until the user's config is in a state and its reason and problems
// hold all the texts.
func (f *fixture) waitConfig(want status.ConfigState, texts ...string) {
	f.t.Helper()
	f.eventually("the config is "+string(want), func() error {
		st, err := f.status()
		if err != nil {
			return err
		}
		if st.Config.State != want {
			return fmt.Errorf("it is %+v", st.Config)
		}
		return holds(st.Config.Reason+"\n"+strings.Join(st.Config.Problems, "\n"), texts)
	})
}

func holds(all string, texts []string) error {
	for _, text := range texts {
		if !strings.Contains(all, text) {
			return fmt.Errorf("%q does not say %q", all, text)
		}
	}
	return nil
}

// waitRuns waits until a hook has succeeded at least so often since the process
// started, and returns how often it has.
func (f *fixture) waitRuns(id string, least int) (runs int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("hook %s has run %d times", id, least), func() error {
		h, err := f.hook(id)
		if err != nil {
			return err
		}
		if runs = h.Runs - h.Failures; runs < least || h.State != status.HookOK {
			return fmt.Errorf("it is %s after %d runs and %d failures: %s", h.State, h.Runs, h.Failures, h.LastError)
		}
		return nil
	})
	return runs
}

// waitReady waits until a process leads and every module has once been released, or has a reason.
func (f *fixture) waitReady() {
	f.t.Helper()
	f.waitReadyAs(true)
}

// waitReadyAs waits until a process serves, and leads or stands by; one that leads has released its modules.
func (f *fixture) waitReadyAs(leader bool) {
	f.t.Helper()
	page := "/readyz"
	if leader {
		page = "/readyz/modules"
	}
	f.eventually(page+" answers 200", func() error {
		code, body, err := f.http(page)
		switch {
		case err != nil:
			return err
		case code != http.StatusOK:
			return fmt.Errorf("%d: %s", code, body)
		}
		if st, err := f.status(); err != nil || st.Leader != leader {
			return fmt.Errorf("it leads is %t, want %t: %v", st.Leader, leader, err)
		}
		return nil
	})
}

var listens = regexp.MustCompile(`"listen":"([^"]+)"`)

// http asks the process for its own page.
func (f *fixture) http(path string) (code int, body string, err error) {
	found := listens.FindStringSubmatch(f.process.Output())
	if found == nil {
		return 0, "", fmt.Errorf("it does not listen yet: %s", f.process.Output())
	}
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+found[1]+path, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	return resp.StatusCode, readAll(resp.Body), nil
}

// probe sends an event through the tree's [probe] and waits until it has arrived.
func (f *fixture) probe() {
	f.t.Helper()
	h, err := f.hook(probeHook)
	if err != nil {
		f.t.Fatal(err)
	}
	f.probes++
	f.touch("e2e-probe", fmt.Sprint(f.probes))
	f.waitRuns(probeHook, h.Runs-h.Failures+1)
}
