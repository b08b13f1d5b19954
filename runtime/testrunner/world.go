package testrunner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/metrics"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/sim"
)

// world is the simulated cluster of one test: [builtins.World].
type world struct {
	o      Options
	file   string
	module string
	w      *sim.World
	say    func(string)

	started bool
	hosts   map[string]func(effect.Request) (builtins.Fetched, error)
	asked   map[string]bool // of hosts
	random  io.Reader       // of the test's own calls
	env     map[string]string
	pods    pods

	expected []*expected // failures
	varying  []varying   // for explorations
	parents  map[schema.GroupKind]bool
	changes  changes
	skip     changes
	late     map[parentLife][]func() error
}

const (
	namespace = "starling-system"
	name      = "starling"
)

// newWorld makes the cluster of a test, with a process to come. With a way, things happen in its order.
func newWorld(o Options, file string, by *way, say func(string)) (w *world, err error) {
	w = &world{o: o, file: file, module: moduleOf(o.Tree, file), say: say,
		hosts: map[string]func(effect.Request) (builtins.Fetched, error){}, asked: map[string]bool{}, env: map[string]string{}, random: o.keys.From(rand.NewChaCha8([32]byte{}))}
	if w.module == "" {
		return nil, fmt.Errorf("%s: the folder %s is no module of the tree", file, path.Dir(file))
	}
	var seed uint64
	if by != nil {
		w.parents, w.skip, seed = parentsOf(o.Generation), by.skip, by.seed
	}
	w.w, err = sim.New(sim.Options{Generation: o.Generation.Only(w.module), Builtins: o.Builtins, Renderer: o.Renderer, Namespace: namespace, Name: name, HTTP: w, Answerer: &w.pods, Env: w.lookEnv, Keys: o.keys, Seed: seed, Patient: by != nil, Twice: true,
		Record: o.Record, Uncommitted: o.Uncommitted,
		Log: func(module, hook string, level builtins.Level, msg string, fields []builtins.Field) {
			if hook != "" || level != builtins.LevelError || !o.told(module) {
				w.say(format(level, module, hook, msg, fields))
			}
		}})
	return w, err
}

// format is one line of a test's log.
func format(level builtins.Level, module, hook, msg string, fields []builtins.Field) string {
	text := level.String() + ": "
	if hook != "" {
		text += hook + ": "
	} else if module != "" {
		text += module + ": "
	}
	text += msg
	for _, f := range fields {
		data, err := json.Marshal(f.Value)
		if err != nil {
			data = []byte("?")
		}
		text += " " + f.Key + "=" + string(data)
	}
	return text
}

func (w *world) Module() string { return w.module }
func (w *world) Now() time.Time { return w.w.Now() }

// Random implements [builtins.World]: each run of a test gets the same bytes, in all orders of -explore.
func (w *world) Random() io.Reader { return w.random }

func (w *world) Get(_ context.Context, ref effect.Ref) (map[string]any, error) { return w.w.Get(ref) }

func (w *world) List(_ context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	return w.w.List(apiVersion, kind, namespaces, labels, fields)
}

func (w *world) Scope(apiVersion, kind string) (namespaced bool, err error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	k, known := w.w.Store().KindOf(gv.WithKind(kind))
	return k.Namespaced || !known, err
}

// failures are the errors of t.cluster.fail_next.
var failures = map[string]func(kind string) error{
	"conflict":  func(kind string) error { return apierrors.NewConflict(resource(kind), "", errors.New("injected")) },
	"notfound":  func(kind string) error { return apierrors.NewNotFound(resource(kind), "") },
	"forbidden": func(kind string) error { return apierrors.NewForbidden(resource(kind), "", errors.New("injected")) },
	"invalid":   func(kind string) error { return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "", nil) },
	"timeout":   func(string) error { return apierrors.NewTimeoutError("injected", 0) },
	"internal":  func(string) error { return apierrors.NewInternalError(errors.New("injected")) },
}

// likeKind is the kind that was meant by a name in other letters; "" where there is none: the
// kind may come with a CustomResourceDefinition.
func (w *world) likeKind(name string) string {
	near := ""
	for _, k := range w.w.Store().Kinds() {
		switch {
		case k.Kind == name:
			return ""
		case strings.EqualFold(k.Kind, name), strings.EqualFold(k.Plural, name):
			near = k.Kind
		}
	}
	return near
}

func resource(kind string) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(kind)}
}

// verbs are those of calls to the API server, as [store.Store.FailNext] knows them.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection", "write", "*"}

func (w *world) FailNext(verb, kind, failure string, times int) error {
	// A call that never comes would have the test pass whatever happens.
	if !slices.Contains(verbs, verb) {
		return fmt.Errorf("verb: %q is none (want %s)", verb, strings.Join(verbs, ", "))
	}
	if near := w.likeKind(kind); near != "" {
		return fmt.Errorf("kind: %q is none (did you mean %s?)", kind, near)
	}
	make := failures[failure]
	if make == nil {
		known := []string{"conflict", "notfound", "forbidden", "invalid", "timeout", "internal"}
		hint := message.DidYouMean(failure, known, "want "+strings.Join(known, ", "))
		return fmt.Errorf("error: %q is none (%s)", failure, hint)
	}
	w.w.Store().FailNext(verb, kind, make(kind), times)
	return nil
}

func (w *world) Start(ctx context.Context, all bool) error {
	if w.started {
		return errors.New("started already; t.restart() ends the process and begins another")
	}
	if all {
		w.w.Use(w.o.Generation) // the cluster stays, the process gets the whole tree
	}
	w.started = true
	m := w.o.Generation.Modules[w.module]
	if m != nil && m.Tree.ModuleFile == w.file && len(m.Hooks) == 0 {
		return errors.New("nothing to start: the test is in no module of a tree, and its file registers no hook")
	}
	if !all {
		if err := w.switchOn(); err != nil {
			return err
		}
	}
	err := w.w.Start(ctx)
	w.blind()
	return err
}

// blind logs which watches see nothing, as their kinds are not served: nothing else of a test says so.
func (w *world) blind() {
	for _, h := range w.w.Status().Hooks {
		for _, kind := range h.NotServed {
			w.say(format(builtins.LevelWarn, h.Module, h.ID, "the cluster of the test does not serve "+kind+", so the watch sees nothing: put the CustomResourceDefinition into crds/ of a module, or have the test apply it before t.start()", nil))
		}
	}
}

// switchOn has the test's module work, unless the test has switched it off.
func (w *world) switchOn() error {
	m := w.o.Generation.Modules[w.module]
	if m == nil {
		return nil
	}
	data, err := w.w.UserConfig()
	if err != nil {
		return err
	}
	if key := values.EnabledKey(m.Key); data[key] == "" {
		data[key] = "true"
	}
	return w.w.Configure(data)
}

// Settle notes, too, which failures there are: they may be mended before the test asks.
func (w *world) Settle(ctx context.Context) error {
	err := w.w.Settle(ctx)
	if len(w.expected) > 0 {
		w.look()
	}
	return err
}

func (w *world) Restart(ctx context.Context) error {
	if !w.started {
		return errors.New("nothing was started yet; call t.start() first")
	}
	w.w.Stop()
	return w.w.Start(ctx)
}

func (w *world) Advance(ctx context.Context, d time.Duration) error {
	if err := w.Settle(ctx); err != nil {
		return err
	}
	return w.w.Advance(ctx, d)
}

// Quiet looks at what another process finds to write in the same cluster: one that is
// as it should be is left alone.
func (w *world) Quiet(ctx context.Context) (string, error) {
	if err := w.Settle(ctx); err != nil {
		return "", err
	}
	before := w.w.Store().Version()
	if err := w.Restart(ctx); err != nil {
		return "", err
	}
	if after := w.w.Store().Version(); after != before {
		return "a restart, which changes nothing, writes " + w.w.ChangedSince(before), nil
	}
	return "", nil
}

func (w *world) Configure(ctx context.Context, module string, vals map[string]any) error {
	key := "global"
	if module != "global" {
		m := w.o.Generation.Modules[module]
		if m == nil {
			return w.noModule(module)
		}
		key = m.Key
	}
	data, err := json.Marshal(vals)
	if err != nil {
		return err
	}
	return w.configure(ctx, key, string(data))
}

func (w *world) Switch(ctx context.Context, module string, on bool) error {
	m := w.o.Generation.Modules[module]
	if m == nil {
		return w.noModule(module)
	}
	return w.configure(ctx, values.EnabledKey(m.Key), fmt.Sprint(on))
}

// configure changes one key of the ConfigMap.
func (w *world) configure(ctx context.Context, key, text string) error {
	data, err := w.w.UserConfig()
	if err != nil {
		return err
	}
	data[key] = text
	if err := w.w.Configure(data); err != nil {
		return err
	}
	return w.Settle(ctx)
}

func (w *world) noModule(name string) error {
	hint := "; " + message.DidYouMean(name, w.o.Generation.Names, "the tree has "+strings.Join(w.o.Generation.Names, ", "))
	return fmt.Errorf("there is no module %q%s", name, hint)
}

func (w *world) Values(module string) (map[string]any, error) {
	if !w.started {
		return nil, errors.New("nothing was started yet; call t.start() first")
	}
	if v := w.w.Values(module); v != nil {
		return v, nil
	}
	return nil, w.noModule(module)
}

// hook is the id of the one of this name.
func (w *world) hook(name string) (string, error) {
	var ids []string
	for _, id := range w.w.Hooks() {
		if w.names(name, id) {
			ids = append(ids, id)
		}
	}
	switch len(ids) {
	case 0:
		return "", noHook(name, w.w.Hooks())
	case 1:
		return ids[0], nil
	}
	slices.Sort(ids)
	return "", fmt.Errorf("%q may be %s", name, strings.Join(ids, " or "))
}

func (w *world) Actions(controller, key string) ([]reconcile.Action, error) {
	id, err := w.hook(controller)
	if err != nil {
		return nil, err
	}
	actions, there := w.w.Actions(id, key)
	if !there {
		return nil, fmt.Errorf("controller %s has no parent %q", controller, key)
	}
	return actions, nil
}

func (w *world) Runs(hook string) ([]builtins.TestRun, error) {
	id, err := w.hook(hook)
	if err != nil {
		return nil, err
	}
	var out []builtins.TestRun
	for _, r := range w.w.Runs {
		if r.Hook != id || sim.Injected(r.Failure()) {
			continue
		}
		one := builtins.TestRun{Key: r.Key, Effects: map[string]any{}}
		if err := r.Failure(); err != nil {
			one.Error = err.Error()
		}
		if data, err := json.Marshal(r.Effects); err == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &one.Effects) // what was just written
		}
		for _, l := range r.Logs {
			entry := map[string]any{"level": l.Level.String(), "message": l.Text}
			for _, f := range l.Fields {
				entry[f.Key] = f.Value
			}
			one.Logs = append(one.Logs, entry)
		}
		out = append(out, one)
	}
	return out, nil
}

func (w *world) Metric(metric string, labels map[string]string) (float64, bool) {
	suffix := strings.TrimPrefix(metrics.Key("", metric, labels), " ")
	for key, v := range w.w.Metrics.Values() {
		if strings.HasSuffix(key, " "+suffix) {
			return v, true
		}
	}
	return 0, false
}

func (w *world) Release(ctx context.Context, module string) (map[string]any, error) {
	return w.w.Release(ctx, module)
}

func (w *world) Golden(golden, text string) error {
	if w.o.Golden == nil {
		return errors.New("there are no golden files here")
	}
	return w.o.Golden.Compare(path.Dir(w.file), golden, text)
}

var _ builtins.World = (*world)(nil)
