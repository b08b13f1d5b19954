package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/runtime/admin"
)

const (
	defaultName      = "starling"
	defaultNamespace = "starling-system"
	// podNamespaceFile is where a pod finds the namespace it runs in.
	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// instance names one starling and the folder it keeps on this machine. `run` and
// `get` fill it from the same flags with the same defaults, so that in a second
// terminal `starling get modules` finds what `starling run` started.
type instance struct {
	Namespace string // the operator's own namespace
	Name      string // names its ConfigMap, Lease, Secrets and socket
	StateDir  string // holds the socket and what must outlive a crash
	Dev       bool   // it is a starling dev, whose socket is beside that of a starling run
}

// user is the instance's ServiceAccount as the API server names it.
func (i *instance) user() string { return "system:serviceaccount:" + i.Namespace + ":" + i.Name }

// addFlags declares --namespace, --name and --state-dir.
//
// The default namespace is the pod's own in a cluster, else starling-system. The
// kubeconfig's context is left out of it on purpose: where an operator keeps its
// state must not depend on which namespace someone last looked at.
func (i *instance) addFlags(fs *pflag.FlagSet) {
	i.addNames(fs)
	i.addStateDir(fs)
}

// addStateDir declares --state-dir.
func (i *instance) addStateDir(fs *pflag.FlagSet) {
	fs.StringVar(&i.StateDir, "state-dir", "",
		"`folder` of the socket and of what must outlive a crash (default: a temporary folder of the instance)")
}

// addNames declares --namespace and --name.
func (i *instance) addNames(fs *pflag.FlagSet) {
	fs.StringVarP(&i.Namespace, "namespace", "n", "",
		"the operator's own `namespace` (default: the pod's in a cluster, else "+defaultNamespace+")")
	fs.StringVar(&i.Name, "name", defaultName,
		"the instance's `name`: of its ConfigMap, Lease, Secrets and socket")
}

// complete puts the defaults in and checks the names. podFile is the file with a
// pod's namespace ([podNamespaceFile]).
func (i *instance) complete(podFile string) error {
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

// completeNames is complete for who keeps nothing on this machine.
func (i *instance) completeNames(podFile string) error {
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

// makeStateDir makes the state folder. In the shared temporary folder another
// user could have made it first, so there the folder above it is checked as well.
func (i *instance) makeStateDir() error {
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

// socket returns the path of the admin socket. It has its own folder, closed
// to others, because the state folder may be a volume that anyone may write to.
func (i *instance) socket() string {
	if i.Dev {
		return devSocketIn(i.StateDir)
	}
	return socketIn(i.StateDir)
}

func socketIn(stateDir string) string { return filepath.Join(stateDir, "admin", "starling.sock") }

// devSocketIn is where a starling dev listens: one of the same name may run beside it.
func devSocketIn(stateDir string) string { return filepath.Join(stateDir, "dev", "starling.sock") }

// others returns the instances of this user whose default state folder has a
// socket, as "namespace/name": what `get` names when the asked one is not there. With Dev they
// are those that have a starling dev.
func (i *instance) others() []string {
	sockets, _ := filepath.Glob((&instance{StateDir: filepath.Join(instancesDir(), "*.*"), Dev: i.Dev}).socket())
	var out []string
	for _, s := range sockets {
		ns, name, _ := strings.Cut(filepath.Base(filepath.Dir(filepath.Dir(s))), ".")
		if ns != i.Namespace || name != i.Name {
			out = append(out, ns+"/"+name)
		}
	}
	return out
}
