package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// operatorNamespace is where Starling keeps its own objects.
const operatorNamespace = "starling-system"

// bench is one run: a control plane, what was started on it, and the table.
type bench struct {
	quick      bool
	parents    int // of the section controllers; 0: as many as usual
	began      time.Time
	broken     context.CancelCauseFunc // ends the run: a child has died
	dir        string
	kubeconfig string
	program    string // bin/starling
	client     kubernetes.Interface
	children   []*process // in the order of their start
	installed  bool       // the modules of thousand
	far        bool       // the API server is far away
	table      table
}

// setUp finds the program and makes the folder.
func (b *bench) setUp() (err error) {
	if b.program, err = program("STARLING_BIN", "bin/starling", "build"); err != nil {
		return err
	}
	b.dir, err = os.MkdirTemp("", "starling-bench-")
	return err
}

// startCluster starts the control plane.
func (b *bench) startCluster(ctx context.Context) error {
	devcluster, err := program("STARLING_DEVCLUSTER", "bin/devcluster", "devcluster")
	if err != nil {
		return err
	}
	b.kubeconfig = filepath.Join(b.dir, "kubeconfig")
	b.say("control plane …")
	if _, err := b.start(devcluster, "--kubeconfig", b.kubeconfig, "--dir", filepath.Join(b.dir, "cluster")); err != nil {
		return err
	}
	// The file is written when the cluster is ready.
	if err := wait(ctx, func() bool { _, err := os.Stat(b.kubeconfig); return err == nil }); err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	if b.client, err = newClient(b.kubeconfig); err != nil {
		return err
	}
	return b.makeNamespaces(ctx, operatorNamespace)
}

// program returns the path of a program that make builds.
func program(variable, path, target string) (string, error) {
	if named := os.Getenv(variable); named != "" {
		path = named
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is missing: run make %s in the top folder, and the bench there too", path, target)
	}
	return path, nil
}

// adminConfig reads the kubeconfig. No limit of the client slows anyone down, and
// each config gets its own connection.
func adminConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.Dial = new(net.Dialer).DialContext
	return config, nil
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := adminConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// bareClient reads the arguments of a bare side, and returns its client and a context that ends
// when the bench ends the side.
func bareClient(flags *flag.FlagSet, args []string) (context.Context, context.CancelFunc, kubernetes.Interface, error) {
	kubeconfig := flags.String("kubeconfig", "", "")
	if err := flags.Parse(args); err != nil {
		return nil, nil, nil, err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	return ctx, stop, client, nil
}

func (b *bench) makeNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := b.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// removeNamespaces deletes namespaces with all that is in them and waits until they are
// gone.
func (b *bench) removeNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := b.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := b.awaitRemoval(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// awaitRemoval waits until a namespace is gone.
func (b *bench) awaitRemoval(ctx context.Context, name string) error {
	late := time.Now().Add(patience)
	for time.Now().Before(late) {
		_, err := b.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err := pause(ctx, time.Second/10); err != nil {
			return err
		}
	}
	return fmt.Errorf("namespace %s is not gone within %s", name, patience)
}

// say tells on stderr what goes on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts a program, which close stops. One that ends before that ends the run.
func (b *bench) start(program string, args ...string) (*process, error) {
	p, err := startProcess(program, args...)
	if err != nil {
		return nil, err
	}
	b.children = append(b.children, p)
	go func() {
		<-p.ended
		if !p.asked.Load() {
			b.broken(p.died())
		}
	}()
	return p, nil
}

// close stops what still runs, last first, and removes the folder.
func (b *bench) close() error {
	var errs []error
	for i := len(b.children) - 1; i >= 0; i-- {
		errs = append(errs, b.children[i].stop())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}

// patience is how long anything here may take before the bench gives up.
const patience = 10 * time.Minute

// wait looks at done often, until it holds.
func wait(ctx context.Context, done func() bool) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for !done() {
		select {
		case <-ticks.C:
		case <-late.C:
			return fmt.Errorf("not within %s", patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// pause lets everything settle: what was started goes idle, freed memory goes back.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle rests before memory or processor time is read.
func (b *bench) settle(ctx context.Context) error {
	if b.quick {
		return pause(ctx, time.Second)
	}
	return pause(ctx, 10*time.Second)
}
