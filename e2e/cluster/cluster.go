// Package cluster is what end-to-end tests stand on: a real control plane, which
// bin/devcluster runs, and Starling processes that work on it.
//
// A test binary starts one control plane; its tests keep out of each other's way
// by their own namespaces:
//
//	var shared *cluster.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m, &shared)) }
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// spacious is the environment of a control plane: it need not save memory, and with what Go does by itself a fifth of
// its time goes to collecting garbage. Stacks of requests begin as large as they get: growing them is a fourteenth more.
var spacious = []string{"GOGC=400", "GOMEMLIMIT=1GiB", "GODEBUG=adaptivestackstart=1"}

const (
	startTimeout = 5 * time.Minute // of a control plane on a busy machine; 3 s on an idle one
	stopTimeout  = 2 * time.Minute // of any process
)

// Cluster is a running control plane, seen as its admin. Its methods may be called
// by parallel tests.
type Cluster struct {
	// Config is the admin's. Copy it before you change it.
	Config *rest.Config
	// Kubeconfig is the admin's kubeconfig file.
	Kubeconfig string
	// Client and Dynamic are made from Config.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface

	mapper  *restmapper.DeferredDiscoveryRESTMapper
	process *Process
	dir     string
}

// Main starts a control plane, stores it in shared, runs the tests of m and stops
// it. It returns the exit code for os.Exit: not 0 when a test failed or the control
// plane did not start.
func Main(m *testing.M, shared **Cluster) int {
	c, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*shared = c
	code := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// Start starts a control plane with one node, fake-0, in a temporary folder. The
// program is bin/devcluster of the repository, or what STARLING_DEVCLUSTER names.
// The control plane dies with the test process; call [Cluster.Stop] to see it stop
// well.
func Start() (*Cluster, error) {
	program, err := find("STARLING_DEVCLUSTER", "devcluster")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "starling-e2e-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := c.start(program, Address()); err != nil { // a test may restart it
		if c.process != nil {
			c.process.Signal(syscall.SIGKILL)
			<-c.process.done
		}
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), os.RemoveAll(dir))
	}
	return c, nil
}

func (c *Cluster) start(program, address string) (err error) {
	c.process, err = StartProcess(spacious, program, "--kubeconfig", c.Kubeconfig, "--dir", filepath.Join(c.dir, "data"), "--addr", address)
	if err != nil {
		return err
	}
	ready := func() error { // the file appears when the cluster is ready
		_, err := os.Stat(c.Kubeconfig)
		return err
	}
	if err := poll(startTimeout, ready, c.process.done); err != nil {
		return fmt.Errorf("%s is not ready: %s", program, c.process.Output())
	}
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS, c.Config.Burst = 500, 1000
	c.Config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	c.Client = client
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	return err
}

// WebhookClientCA is the file with the authority of the certificate that the API server shows
// to webhooks.
func (c *Cluster) WebhookClientCA() string {
	return filepath.Join(c.dir, "data", "pki", "webhooks", "ca.crt")
}

// Restart stops the control plane and starts it again, at the same address and with the
// same data. No other test may use it meanwhile.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	if code, err := c.process.Stop(); err != nil || code != 0 {
		t.Fatalf("devcluster ended with exit code %d, %v: %s", code, err, c.process.Output())
	}
	c.again(t)
}

// Crash kills the control plane, etcd with it, and starts it again as [Cluster.Restart] does.
func (c *Cluster) Crash(t testing.TB) {
	t.Helper()
	c.process.Signal(syscall.SIGKILL)
	<-c.process.done
	c.again(t)
}

func (c *Cluster) again(t testing.TB) {
	t.Helper()
	if err := os.Remove(c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := c.start(c.process.cmd.Path, strings.TrimPrefix(c.Config.Host, "https://")); err != nil {
		t.Fatal(err)
	}
}

// Compact drops all history that etcd has: a client that asks for an earlier version is told
// that it is gone, unless the API server remembers it.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	said := func() int { return strings.Count(c.process.Output(), "compacted: ") }
	before := said()
	c.process.Signal(syscall.SIGUSR1)
	Eventually(t, settleTimeout, "etcd is compacted", func() error {
		if said() == before {
			return fmt.Errorf("devcluster printed %q", c.process.Output())
		}
		return nil
	})
}

// Process returns the process of the control plane.
func (c *Cluster) Process() *Process { return c.process }

// Stop stops the control plane and removes its data. An error says that it did not
// stop well.
func (c *Cluster) Stop() error {
	code, err := c.process.Stop()
	if err == nil && code != 0 {
		err = fmt.Errorf("devcluster ended with exit code %d: %s", code, c.process.Output())
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

// Eventually calls check again and again until it returns nil, and ends the test with
// check's last error when that takes longer than timeout. what says what is waited
// for, as in "the release is gone".
func Eventually(t testing.TB, timeout time.Duration, what string, check func() error) {
	t.Helper()
	if err := poll(timeout, check, nil); err != nil {
		t.Fatalf("%s: not within %s: %v", what, timeout, err)
	}
}

// poll calls check until it returns nil, time is up or stop closes, and returns check's last error. The first calls
// are 20 ms apart, later ones up to 100 ms: each costs the processor that is waited for.
func poll(timeout time.Duration, check func() error, stop <-chan struct{}) error {
	deadline := time.After(timeout)
	for pause := 20 * time.Millisecond; ; pause = min(pause+pause/4, 100*time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-deadline:
			return err
		case <-stop:
			return err
		}
	}
}
