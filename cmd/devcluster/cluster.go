package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	startTimeout = 4 * time.Minute  // of one component on a slow machine
	stopTimeout  = 10 * time.Second // of the API server
)

// run starts the cluster, says so on out, and stops it when ctx ends. A process
// has one cluster in its life: feature gates and the metrics of the controllers
// are global.
func run(ctx context.Context, o options, out io.Writer, stderr *os.File) error {
	started := time.Now()
	kubeconfig, err := reserveKubeconfig(o.kubeconfig)
	if err != nil {
		return err
	}
	defer kubeconfig.discard()
	l, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("--addr %s: %w; choose another one, or port 0 for a free port", o.addr, err)
	}
	defer l.Close()
	s, err := openState(o.dir, stderr)
	if err != nil {
		return err
	}
	err = serve(ctx, o, s, l, out, func(c *certs, server string) error {
		admin, err := c.kubeconfig(server, "kubernetes-admin", "system:masters")
		if err != nil {
			return err
		}
		if err := kubeconfig.publish(admin); err != nil {
			return fmt.Errorf("--kubeconfig %s: %w", o.kubeconfig, err)
		}
		_, err = fmt.Fprintf(out, "ready: %s kubeconfig=%s log=%s (%.1fs)\n",
			server, o.kubeconfig, s.log.Name(), time.Since(started).Seconds())
		return err
	})
	if ctx.Err() != nil {
		err = nil // whatever was cut short, stopping is what was asked for
	}
	s.close(err != nil)
	if err != nil {
		return fmt.Errorf("%w; the log is %s", err, s.log.Name())
	}
	return nil
}

// serve runs the components until ctx ends or one of them fails, and returns the
// cause. It calls ready once pods can be made and scheduled. Until then nothing is
// stopped in order: components that are still starting take a cancellation for a
// failure and shout. The process ends instead, and etcd's files bear that.
func serve(ctx context.Context, o options, s *state, l net.Listener, out io.Writer, ready func(c *certs, server string) error) error {
	e, err := startEtcd(ctx, s.path("etcd"), s.path("etcd.log"))
	if err != nil {
		return err
	}

	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: addr.Port}
	}
	server := "https://" + addr.String()
	c, err := newCerts(s.path("pki"), addr.IP)
	if err != nil {
		return err
	}
	kubeconfigs := map[string]string{} // of the components, by user
	for _, user := range []string{"system:kube-controller-manager", "system:kube-scheduler"} {
		k, err := c.kubeconfig(server, user)
		if err != nil {
			return err
		}
		kubeconfigs[user] = s.path("pki", user[len("system:"):]+".kubeconfig")
		if err := clientcmd.WriteToFile(*k, kubeconfigs[user]); err != nil {
			return err
		}
	}

	api, err := newAPIServer(l, e.Clients[0].Addr().String(), c)
	if err != nil {
		return err
	}
	controllers, err := newControllerManager(kubeconfigs["system:kube-controller-manager"], c)
	if err != nil {
		return err
	}
	sched, err := newScheduler(kubeconfigs["system:kube-scheduler"])
	if err != nil {
		return err
	}
	// The feature gates are one registry for all three: set once, after the last
	// flags are parsed.
	if err := compatibility.DefaultComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	client, err := adminClient(c, server)
	if err != nil {
		return err
	}

	// A failure of a component, or a signal, ends ctx; the components themselves go on
	// until they are stopped in order.
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	servers, clients := newGroup(ctx, giveUp), newGroup(ctx, giveUp)

	servers.spawn("kube-apiserver", api)
	if err := waitFor(ctx, "kube-apiserver", func() error { return readyz(ctx, client) }); err != nil {
		return err
	}
	nodes := &fakeNodes{client: client}
	clients.spawn("kube-controller-manager", controllers)
	clients.spawn("kube-scheduler", sched)
	clients.spawn("fake nodes", nodes.run)
	if err := nodes.create(ctx, o.nodes); err != nil {
		return err
	}
	if err := waitFor(ctx, "the cluster", func() error { return schedulable(ctx, client, o.nodes) }); err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	defer signal.Stop(asked)
	clients.spawn("etcd's compaction", func(ctx context.Context) error { return compact(ctx, e, asked, out) })
	if err := ready(c, server); err != nil {
		return err
	}
	<-ctx.Done()

	// Clients stop first, the API server second, etcd last: the other way round
	// each waits for what is gone.
	<-clients.stop()
	select {
	case <-servers.stop():
	case <-time.After(stopTimeout):
	}
	e.Close()
	return context.Cause(ctx)
}

// group is components that are stopped together.
type group struct {
	ctx    context.Context
	cancel context.CancelFunc
	failed context.CancelCauseFunc
	wg     sync.WaitGroup
}

// newGroup makes a group that outlives ctx; failed is told of a component that ends
// before the group is stopped.
func newGroup(ctx context.Context, failed context.CancelCauseFunc) *group {
	g := &group{failed: failed}
	g.ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return g
}

func (g *group) spawn(name string, f runner) {
	g.wg.Go(func() {
		err := f(g.ctx)
		if err == nil {
			err = errors.New("it ended by itself")
		}
		if g.ctx.Err() == nil {
			g.failed(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// stop returns a channel that is closed when all have ended.
func (g *group) stop() <-chan struct{} {
	g.cancel()
	ended := make(chan struct{})
	go func() { g.wg.Wait(); close(ended) }()
	return ended
}

func adminClient(c *certs, server string) (kubernetes.Interface, error) {
	k, err := c.kubeconfig(server, "devcluster", "system:masters")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*k, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000
	config.WarningHandler = rest.NoWarnings{}
	return kubernetes.NewForConfig(config)
}

// waitFor asks until check finds nothing amiss.
func waitFor(ctx context.Context, what string, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s is not ready after %s: %w", what, startTimeout, last)
}

func readyz(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	code := 0
	result := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
	if code == http.StatusOK {
		return nil
	}
	return fmt.Errorf("/readyz answers %d: %w", code, result.Error())
}

// schedulable says why a pod could not be made and scheduled now.
func schedulable(ctx context.Context, client kubernetes.Interface, nodes int) error {
	if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return err
	}
	for i := range nodes {
		n, err := client.CoreV1().Nodes().Get(ctx, nodeName(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ready(n) {
			return fmt.Errorf("node %s is not ready", n.Name)
		}
		for _, taint := range n.Spec.Taints {
			if taint.Key == notReadyTaint {
				return fmt.Errorf("node %s has the taint %s", n.Name, taint.Key)
			}
		}
	}
	return nil
}
