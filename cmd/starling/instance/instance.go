// Package instance finds one starling, and asks it: that of this machine, or those in the pods of a cluster.
package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/runtime/admin"
)

const (
	// DefaultName is the name of an instance that was given none.
	DefaultName      = "starling"
	defaultNamespace = "starling-system"
	// PodNamespaceFile is where a pod finds the namespace it runs in.
	PodNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Instance names one starling and the folder it keeps on this machine. `run` and
// `get` fill it from the same flags with the same defaults, so that in a second
// terminal `starling get modules` finds what `starling run` started.
type Instance struct {
	Namespace string // the operator's own namespace
	Name      string // names its ConfigMap, Lease, Secrets and socket
	StateDir  string // holds the socket and what must outlive a crash
	Dev       bool   // it is a starling dev, whose socket is beside that of a starling run
}

// User is the instance's ServiceAccount as the API server names it.
func (i *Instance) User() string { return "system:serviceaccount:" + i.Namespace + ":" + i.Name }

// AddFlags declares --namespace, --name and --state-dir.
//
// The default namespace is the pod's own in a cluster, else starling-system. The
// kubeconfig's context is left out of it on purpose: where an operator keeps its
// state must not depend on which namespace someone last looked at.
func (i *Instance) AddFlags(fs *pflag.FlagSet) {
	i.AddNames(fs)
	i.AddStateDir(fs)
}

// AddStateDir declares --state-dir.
func (i *Instance) AddStateDir(fs *pflag.FlagSet) {
	fs.StringVar(&i.StateDir, "state-dir", "",
		"`folder` of the socket and of what must outlive a crash (default: a temporary folder of the instance)")
}

// AddNames declares --namespace and --name.
func (i *Instance) AddNames(fs *pflag.FlagSet) {
	fs.StringVarP(&i.Namespace, "namespace", "n", "",
		"the operator's own `namespace` (default: the pod's in a cluster, else "+defaultNamespace+")")
	fs.StringVar(&i.Name, "name", DefaultName,
		"the instance's `name`: of its ConfigMap, Lease, Secrets and socket")
}

// Complete puts the defaults in and checks the names.
func (i *Instance) Complete() error { return i.complete(PodNamespaceFile) }

func (i *Instance) complete(podFile string) error {
	if err := i.completeNames(podFile); err != nil {
		return err
	}
	if i.StateDir == "" {
		i.StateDir = filepath.Join(instancesDir(), i.Namespace+"."+i.Name)
	}
	abs, err := filepath.Abs(i.StateDir)
	if err != nil {
		return fmt.Errorf("--state-dir %s: %w", i.StateDir, err)
	}
	i.StateDir = abs
	return nil
}

// CompleteNames is Complete for who keeps nothing on this machine.
func (i *Instance) CompleteNames() error { return i.completeNames(PodNamespaceFile) }

func (i *Instance) completeNames(podFile string) error {
	if i.Namespace == "" {
		i.Namespace = ownNamespace(podFile)
	}
	if errs := validation.IsDNS1123Label(i.Namespace); len(errs) > 0 {
		return fmt.Errorf("--namespace %q is not a namespace's name: lower-case letters, digits and dashes, at most 63", i.Namespace)
	}
	if errs := validation.IsDNS1123Subdomain(i.Name); len(errs) > 0 {
		return fmt.Errorf("--name %q cannot name objects: lower-case letters, digits, dashes and dots", i.Name)
	}
	return nil
}

// ownNamespace returns the namespace of the pod this process runs in, or
// starling-system outside of a cluster.
func ownNamespace(podFile string) string {
	if b, err := os.ReadFile(podFile); err == nil {
		if ns := strings.TrimSpace(string(b)); ns != "" {
			return ns
		}
	}
	return defaultNamespace
}

// instancesDir holds the default state folders of all instances of this user.
func instancesDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("starling-%d", os.Getuid()))
}

// MakeStateDir makes the state folder. In the shared temporary folder another
// User could have made it first, so there the folder above it is checked as well.
func (i *Instance) MakeStateDir() error {
	if filepath.Dir(i.StateDir) == instancesDir() {
		if err := admin.MakeFolder(instancesDir()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(i.StateDir, 0o700); err != nil {
		return fmt.Errorf("cannot make --state-dir: %w", err)
	}
	return nil
}

// Socket returns the path of the admin socket. It has its own folder, closed
// to others, because the state folder may be a volume that anyone may write to.
func (i *Instance) Socket() string {
	folder := "admin"
	if i.Dev {
		folder = "dev" // one of the same name may run beside it
	}
	return filepath.Join(i.StateDir, folder, "starling.sock")
}

// Explain says what to do when nobody answers.
func (i *Instance) Explain(err error) error {
	if errors.Is(err, admin.ErrNotRunning) {
		return i.NotRunning()
	}
	return err
}

// NotRunning says that nobody answers, and what to do: name the instance that
// does run, or start one.
func (i *Instance) NotRunning() error {
	program, flag := "starling", ""
	if i.Dev {
		program, flag = "starling dev", " --dev"
	}
	what := fmt.Sprintf("no %s %s/%s runs here (socket %s)", program, i.Namespace, i.Name, i.Socket())
	if others := i.others(); len(others) > 0 {
		ns, name, _ := strings.Cut(others[0], "/")
		return fmt.Errorf("%s; seen here: %s; ask it with%s --namespace %s --name %s",
			what, strings.Join(others, ", "), flag, ns, name)
	}
	if i.Dev {
		return fmt.Errorf("%s; start one with: starling dev TREE", what)
	}
	if _, err := os.Stat((&Instance{StateDir: i.StateDir, Dev: true}).Socket()); err == nil {
		return fmt.Errorf("%s; if a starling dev is meant, ask it with --dev", what)
	}
	return fmt.Errorf("%s; start one with: starling run --modules FOLDER; or give its --namespace, --name and --state-dir, or the --context of its cluster", what)
}

// others returns the instances of this user whose default state folder has a
// socket, as "namespace/name": what `get` names when the asked one is not there. With Dev they
// are those that have a starling dev.
func (i *Instance) others() []string {
	sockets, _ := filepath.Glob((&Instance{StateDir: filepath.Join(instancesDir(), "*.*"), Dev: i.Dev}).Socket())
	var out []string
	for _, s := range sockets {
		ns, name, _ := strings.Cut(filepath.Base(filepath.Dir(filepath.Dir(s))), ".")
		if ns != i.Namespace || name != i.Name {
			out = append(out, ns+"/"+name)
		}
	}
	return out
}
