package simulation

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/httpclient"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// maxInput bounds one file of objects or values.
const maxInput = 64 << 20

// World say in which world a command lets modules work: a simulated cluster, or
// one that lies over a real cluster and only reads there.
type World struct {
	Version  string // of this program
	Instance instance.Instance
	Access   instance.Access
	Modules  string // the folder of the tree
	Reading  command.Reading
	Config   string
	// Text is what the file of Config holds, once the world is open.
	Text    []byte
	Files   []string
	Live    bool // look at the kubeconfig's cluster
	offline bool
	scratch bool // without --modules there are none, instead of an error
	Pause   command.Pause
	Env     process.HookEnv
}

// AddFlags declares the flags. A command that looks at a real cluster by default can be told
// not to, and the other way round.
func (f *World) AddFlags(fs *pflag.FlagSet, live bool) {
	needed := " (required)"
	if f.scratch {
		needed = ""
	}
	fs.StringVar(&f.Modules, "modules", "", command.ModulesUsage+needed)
	f.Reading.AddFlags(fs)
	fs.StringArrayVarP(&f.Files, "filename", "f", nil, "`file` of objects, YAML or JSON, that are taken to be in the cluster; - is stdin")
	fs.StringVar(&f.Config, "config", "", "`file` with what the user's ConfigMap is taken to say, as in a tree's values.yaml; - is stdin")
	f.Instance.AddNames(fs)
	f.Access.AddFlags(fs)
	f.Env.AddFlags(fs)
	f.Live = live
	if live {
		fs.BoolVar(&f.offline, "offline", false, "ask no cluster: begin with an empty one")
	} else {
		fs.BoolVar(&f.Live, "live", false, "begin with what is in the kubeconfig's cluster, which is only read; --context and --kubeconfig mean this, too")
	}
}

// Open makes the world; no process works in it yet. log takes what hooks and the engine
// say, nil: nobody does.
func (f *World) Open(ctx context.Context, stdin io.Reader, log sim.Log) (*sim.World, *generation.Generation, error) {
	if f.Modules == "" && !f.scratch {
		return nil, nil, command.ErrNoTree
	}
	if err := cmp.Or(oneStdin(f.Config, f.Files), f.Instance.CompleteNames()); err != nil {
		return nil, nil, err
	}
	if f.Access != (instance.Access{}) {
		f.Live = true
	}
	if f.Live && f.offline && f.Access != (instance.Access{}) {
		return nil, nil, errors.New("--offline asks no cluster, and --context and --kubeconfig name one")
	}
	process.TameLibraries()
	klog.SetLogger(logr.Discard())
	gen, err := f.load(ctx, 1)
	if err == nil {
		err = cmp.Or(f.Reading.SomeModule(gen), f.Pause.Check(gen))
	}
	if err != nil {
		return nil, nil, err
	}
	base, err := f.base(ctx, gen)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range f.Files {
		objects, err := readObjects(file, stdin)
		if err != nil {
			return nil, nil, err
		}
		for _, obj := range objects {
			if err := base.Apply(obj); err != nil { // as a user would
				return nil, nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if f.Config != "" {
		var config map[string]string
		if config, f.Text, err = readConfig(f.Config, stdin); err == nil {
			err = base.Configure(config)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	w, err := base.Fork()
	if err != nil {
		return nil, nil, err
	}
	w.Listen(log)
	return w, gen, nil
}

// load reads and compiles the module tree as it is now.
func (f *World) load(ctx context.Context, number int) (*generation.Generation, error) {
	var t *tree.Tree
	var err error
	if f.Modules == "" {
		t, err = tree.Read(embed.FS{}, tree.Options{Empty: true})
	} else {
		t, err = tree.ReadDir(f.Modules, f.Reading.Options())
	}
	if err != nil {
		return nil, err
	}
	return generation.Load(ctx, generation.Options{
		Tree: t, Std: stdlib.FS, Number: number, Governor: script.NewGovernor(script.GovernorOptions{}),
	}), nil
}

// base is the cluster that the command begins with.
func (f *World) base(ctx context.Context, gen *generation.Generation) (*sim.World, error) {
	env, err := f.Env.Lookup()
	if err != nil {
		return nil, err
	}
	o := sim.Options{
		Env: env, Generation: gen, Builtins: store.NewBuiltins(), Namespace: f.Instance.Namespace, Name: f.Instance.Name,
		Renderer: process.NewRenderer(), PauseAll: f.Pause.All(), Paused: f.Pause,
	}
	if f.Live && !f.offline {
		over, err := f.over(ctx)
		if err != nil {
			return nil, err
		}
		over(&o)
		return sim.New(o)
	}
	w, err := sim.New(o)
	if err != nil {
		return nil, err
	}
	return w, w.Apply(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": f.Instance.Namespace}})
}

// over has a simulated cluster lie over the real one, which is only read.
func (f *World) over(ctx context.Context) (func(*sim.Options), error) {
	client, err := f.Access.Connect(ctx, f.Instance.Namespace, zerolog.Nop(), nil)
	if err != nil {
		return nil, err
	}
	return func(o *sim.Options) {
		o.Origin, o.Now, o.Plans = sim.Live(ctx, client), time.Now(), true
		o.HTTP = httpclient.New(httpclient.Options{
			UserAgent: "starling/" + f.Version, Proxy: http.ProxyFromEnvironment, ReadOnly: true,
		})
	}, nil
}

// oneStdin refuses to read stdin twice: the second time it is empty.
func oneStdin(config string, files []string) error {
	n := 0
	for _, file := range append([]string{config}, files...) {
		if file == "-" {
			n++
		}
	}
	if n > 1 {
		return errors.New("stdin (-) can be only one of the files of --config and --filename")
	}
	return nil
}

// readInput reads a file, or stdin; nil: that is in use, or read more than once.
func readInput(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name == "-" && stdin == nil {
		return nil, errors.New("stdin (-) cannot be read here; give a file")
	}
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("cannot %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("it is larger than %d MiB", maxInput>>20)
	}
	if err == nil {
		if data, err = bounded.Text(data); err != nil {
			err = fmt.Errorf("it %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// readObjects reads a file of objects.
func readObjects(name string, stdin io.Reader) ([]map[string]any, error) {
	data, err := readInput(name, stdin)
	if err != nil {
		return nil, err
	}
	objects, err := builtins.ParseObjects(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return objects, nil
}

// readConfig reads the file of --config, whose text it returns, too.
func readConfig(name string, stdin io.Reader) (config map[string]string, text []byte, err error) {
	if text, err = readInput(name, stdin); err != nil {
		return nil, nil, fmt.Errorf("--config: %w", err)
	}
	if config, err = configData(name, text); err != nil {
		return nil, nil, fmt.Errorf("--config %w", err)
	}
	return config, text, nil
}

// configData reads a user's config: a ConfigMap, or its data as in a values.yaml.
func configData(name string, text []byte) (map[string]string, error) {
	all, err := tree.ParseValues(name, text)
	if err != nil {
		return nil, err
	}
	if all["kind"] == "ConfigMap" {
		all, _ = all["data"].(map[string]any)
	}
	out := map[string]string{}
	for key, v := range all {
		switch v := v.(type) {
		case string:
			out[key] = v
		default:
			section, err := yaml.Marshal(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, key, err)
			}
			out[key] = string(bytes.TrimSpace(section))
		}
	}
	return out, nil
}

// SwitchOn has a module work that nobody has switched on or off: someone who names it
// wants to see it.
func SwitchOn(w *sim.World, gen *generation.Generation, module string) error {
	if gen.Modules[module] == nil {
		return noModule(gen, module)
	}
	return w.SwitchOn(module)
}

func noModule(gen *generation.Generation, name string) error {
	if len(gen.Names) == 0 {
		return fmt.Errorf("%q is no module, and no folder with modules in it", name)
	}
	return fmt.Errorf("there is no module %q; %s", name, message.DidYouMean(name, gen.Names, "the tree has "+strings.Join(gen.Names, ", ")))
}

// Refused says what of the user's config is not in force, and why: else nobody would
// know why a value is not what its ConfigMap says.
func Refused(st status.Status, module string) (notes []string) {
	problems, outcome := st.Config.Problems, map[string]string{}
	for _, text := range problems {
		outcome[text] = "; " + values.Refused
	}
	for _, text := range st.Config.Unknown {
		outcome[text] = "; " + values.Unknown
	}
	for _, m := range st.Modules {
		for _, text := range m.Config.Unused {
			outcome[text] = "; " + values.Unused
		}
		if m.Name == module {
			problems = m.Problems
		}
	}
	for _, text := range problems {
		notes = append(notes, text+outcome[text])
	}
	return notes
}
