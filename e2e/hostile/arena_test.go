package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
)

const (
	// memory is what the process may take: the limit of the Deployment.
	memory = 1 << 30
	// soon is how long anything may take on a busy machine. Only a test that fails waits
	// so long.
	soon = 4 * time.Minute
	// missable is how many beats the healthy module may miss beside an attack.
	missable = 2
)

// arena is an instance with the healthy module, in a memory cgroup.
type arena struct {
	t       *testing.T
	ns      string
	modules string
	config  map[string]string
	args    []string // more flags of run
	memory  *cluster.MemoryGroup
	process *cluster.Starling
	beats   int // sent so far
}

// healthy answers each beat: the text of one ConfigMap goes through a watch, a run and a
// write into another one. Its watch sees all ConfigMaps, so it shares its stream with those
// of attacks.
const healthy = `
def beat(ctx):
    for n in ctx.snapshots["beats"]:
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "answer"}, "data": {"n": n}})

hook(beat, on = [k8s.watch("v1", "ConfigMap", name = "beats", namespaces = ["$NS"], filter = lambda o: o.data["n"] if o.metadata.name == "beat" else None)])
`

func newArena(t *testing.T) *arena {
	t.Helper()
	return newArenaOf(t, memory)
}

// newArenaOf is for a process that may take so much memory.
func newArenaOf(t *testing.T, memory int64) *arena {
	t.Helper()
	a := &arena{t: t, ns: shared.Namespace(t), modules: t.TempDir(), config: map[string]string{}}
	var err error
	if a.memory, err = cluster.NewMemoryGroup(t, memory); err != nil {
		t.Logf("without a memory cgroup: %v", err)
	}
	a.write(map[string]string{
		"healthy/module.star":     "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], names = [\"answer\"])])\n",
		"healthy/hooks/beat.star": healthy,
	})
	return a
}

// write adds files to the tree. A process that watches it sees each new module whole.
func (a *arena) write(files map[string]string) {
	a.t.Helper()
	aside := a.t.TempDir()
	tops := map[string]bool{}
	for path, text := range files {
		file := filepath.Join(aside, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			a.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "$NS", a.ns)), 0o644); err != nil {
			a.t.Fatal(err)
		}
		top, _, _ := strings.Cut(path, "/")
		tops[top] = true
	}
	for _, top := range slices.Sorted(maps.Keys(tops)) {
		if err := os.Rename(filepath.Join(aside, top), filepath.Join(a.modules, top)); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *arena) start() {
	a.t.Helper()
	o := cluster.Options{Modules: a.modules, Namespace: a.ns, Memory: a.memory, Args: a.args}
	if a.process != nil {
		o.StateDir = a.process.StateDir
	}
	a.process = shared.Starling(a.t, o)
}

// stop ends the process, which must have lived until now.
func (a *arena) stop() {
	a.t.Helper()
	a.alive()
	if took := a.memory.Peak(); took > 0 {
		a.t.Logf("the process took %d MiB at most", took>>20)
	}
	if code := a.process.Stop(); code != 0 {
		a.t.Errorf("it ended with exit code %d", code)
	}
}

func (a *arena) alive() {
	a.t.Helper()
	if !a.process.Alive() {
		a.t.Fatalf("the process has died; it took %d MiB at most", a.memory.Peak()>>20)
	}
}

// strike applies the objects of an attack and its section of the config.
func (a *arena) strike(by attack) {
	a.t.Helper()
	if by.objects != "" {
		shared.Apply(a.t, strings.ReplaceAll(by.objects, "$NS", a.ns))
	}
	if by.config == "" {
		return
	}
	a.config[by.name] = by.config
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "starling", "namespace": a.ns}, "data": a.config})
	if err != nil {
		a.t.Fatal(err)
	}
	shared.Apply(a.t, string(text))
}

// eventually waits until check returns nil, as long as the process lives.
func (a *arena) eventually(what string, check func() error) {
	a.t.Helper()
	cluster.Eventually(a.t, soon, what, func() error {
		a.alive()
		return check()
	})
}

var receives = regexp.MustCompile(`"receive":"([^"]+)"`)

// receives is the address of http.receive; "" before there is one.
func (a *arena) receives() string {
	if found := receives.FindStringSubmatch(a.process.Output()); found != nil {
		return found[1]
	}
	return ""
}

// waitSays waits until the status of an attack's module says what it must.
func (a *arena) waitSays(by attack) {
	a.t.Helper()
	if len(by.says) == 0 {
		return
	}
	cluster.Eventually(a.t, soon, "the status of "+by.name+" names the limit", func() error {
		a.alive()
		all, err := a.said(by.name)
		if err != nil {
			return err
		}
		if len(all) > 20_000 {
			a.t.Fatalf("the status of %s has %d bytes", by.name, len(all))
		}
		if !slices.ContainsFunc(by.says, func(text string) bool { return strings.Contains(all, text) }) {
			return fmt.Errorf("%q does not say %q", all, by.says)
		}
		return nil
	})
}

// waitFailures waits until the one hook of an attack has failed so often.
func (a *arena) waitFailures(by attack, least int) {
	a.t.Helper()
	cluster.Eventually(a.t, soon, by.name+" has failed again and again", func() error {
		a.alive()
		st, err := a.status()
		if err != nil {
			return err
		}
		for _, h := range st.Hooks {
			if h.Module == by.name && h.Failures < least {
				return fmt.Errorf("%d times: %s", h.Failures, h.LastError)
			} else if h.Module == by.name {
				return nil
			}
		}
		return fmt.Errorf("there is no hook of %s", by.name)
	})
}

// resident is the memory in bytes that the process has now; 0 where that cannot be read.
func (a *arena) resident() int {
	a.alive()
	m, _ := cluster.MemoryOf(a.process.PID())
	return int(m.Now)
}

func (a *arena) status() (status.Status, error) {
	socket := filepath.Join(a.process.StateDir, "admin", "starling.sock")
	return admin.NewClient(admin.ClientOptions{Socket: socket}).Status(a.t.Context())
}

// said is all that the status says about a module.
func (a *arena) said(module string) (string, error) {
	st, err := a.status()
	if err != nil {
		return "", err
	}
	var all []string
	for _, m := range st.Modules {
		if m.Name == module {
			all = append(append(all, string(m.State), m.Reason, m.LastError), m.Problems...)
		}
	}
	for _, h := range st.Hooks {
		if h.Module == module && h.State != status.HookOK {
			all = append(all, h.LastError)
		}
	}
	for _, problem := range append(st.Config.Problems, st.Config.Reason) {
		if strings.Contains(problem, module) {
			all = append(all, problem)
		}
	}
	return strings.Join(all, "\n"), nil
}

// waitBeat sends a beat, waits for its answer, and returns how long that took.
func (a *arena) waitBeat() time.Duration {
	a.t.Helper()
	begin := time.Now()
	a.send(a.t.Context())
	cluster.Eventually(a.t, soon, "the healthy module beats", func() error {
		a.alive()
		return a.answered(a.t.Context())
	})
	return time.Since(begin)
}

func (a *arena) send(ctx context.Context) {
	a.beats++
	beat := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beat"}, "data": {"n": "%d"}}`, a.beats)
	_, err := shared.Client.CoreV1().ConfigMaps(a.ns).Patch(ctx, "beat", "application/apply-patch+yaml", []byte(beat), metav1.PatchOptions{FieldManager: "beat"})
	if err != nil && ctx.Err() == nil {
		a.t.Errorf("send a beat: %v", err)
	}
}

func (a *arena) answered(ctx context.Context) error {
	cm, err := shared.Client.CoreV1().ConfigMaps(a.ns).Get(ctx, "answer", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no answer yet")
	}
	if err == nil && cm.Data["n"] != fmt.Sprint(a.beats) {
		err = fmt.Errorf("the answer is to beat %s, %d were sent", cm.Data["n"], a.beats)
	}
	return err
}

// pulse sends one beat after the other.
type pulse struct {
	a      *arena
	cancel context.CancelFunc
	done   chan struct{}
	judged chan struct{} // has one element for each beat that was looked at
	missed int
}

// beat sends beats until end is called. One is missed that has no answer when the next one
// comes: after ten times what it takes at rest, three seconds at least.
func (a *arena) beat(rest time.Duration) *pulse {
	ctx, cancel := context.WithCancel(a.t.Context())
	p := &pulse{a: a, cancel: cancel, done: make(chan struct{}), judged: make(chan struct{}, 1000)}
	ticker := time.NewTicker(max(10*rest, 3*time.Second))
	go func() {
		defer close(p.done)
		defer ticker.Stop()
		for {
			a.send(ctx)
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if err := a.answered(ctx); err != nil && ctx.Err() == nil {
				p.missed++
			}
			select {
			case p.judged <- struct{}{}:
			default: // nobody counts so many
			}
		}
	}()
	a.t.Cleanup(func() { cancel(); <-p.done })
	return p
}

// goOn waits for so many beats more.
func (p *pulse) goOn(beats int) {
	p.a.t.Helper()
	for len(p.judged) > 0 {
		<-p.judged
	}
	for range beats {
		select {
		case <-p.judged:
		case <-p.a.t.Context().Done():
			return
		}
	}
	p.a.alive()
}

// end stops the beats and judges them.
func (p *pulse) end() {
	p.a.t.Helper()
	p.cancel()
	<-p.done
	p.a.t.Logf("the healthy module missed %d of %d beats", p.missed, p.a.beats)
	if p.missed > missable {
		p.a.t.Errorf("the healthy module missed %d of %d beats, more than %d", p.missed, p.a.beats, missable)
	}
}
