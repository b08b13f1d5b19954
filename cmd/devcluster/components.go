package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	controllermanageroptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1" // of the Service "kubernetes"
	proxyClient  = "front-proxy-client"
)

// runner is a component with its flags parsed, ready to run until ctx ends.
type runner func(ctx context.Context) error

// The components are made from their option types and own flag sets. Their cobra
// commands would install signal handlers, which panic the second time.
func parse(component string, sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(component, pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%s: flags: %w", component, err)
	}
	return nil
}

// newAPIServer serves on l and keeps its objects in etcd.
func newAPIServer(l net.Listener, etcd string, c *certs) (runner, error) {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	admission, err := c.webhookClient()
	if err != nil {
		return nil, err
	}
	o := apiserveroptions.NewServerRunOptions()
	o.SecureServing.Listener = l
	err = parse("kube-apiserver", o.Flags(), []string{
		"--etcd-servers=http://" + etcd,
		// The port is checked although the listener is given.
		"--bind-address=" + host, "--secure-port=" + port,
		// A loopback address cannot be an endpoint of the Service "kubernetes".
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--requestheader-client-ca-file=" + c.path("ca.crt"), "--requestheader-allowed-names=" + proxyClient,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.path(proxyClient+".crt"), "--proxy-client-key-file=" + c.path(proxyClient+".key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("sa.key"), "--service-account-signing-key-file=" + c.path("sa.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--allow-privileged=true", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--admission-control-config-file=" + admission,
		"--profiling=false",
		// Without these a client that holds a watch keeps a stopping server for 60 s.
		"--shutdown-delay-duration=0s", "--shutdown-send-retry-after=true", "--shutdown-watch-termination-grace-period=1s",
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		completed, err := o.Complete(ctx)
		if err != nil {
			return err
		}
		if errs := completed.Validate(); len(errs) > 0 {
			return fmt.Errorf("options: %v", errs)
		}
		return apiserver.Run(ctx, completed)
	}, nil
}

// clientFlags are of a component with one instance, on its own machine: no
// election, no port, and none of the default rate limits, which slow tests.
func clientFlags(kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
}

func newControllerManager(kubeconfig string, c *certs) (runner, error) {
	o, err := controllermanageroptions.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	all, off, aliases := controllermanager.KnownControllers(), controllermanager.ControllersDisabledByDefault(), controllermanager.ControllerAliases()
	flags := o.Flags(all, off, aliases)
	o.ParsedFlags = &flags
	err = parse("kube-controller-manager", flags, append(clientFlags(kubeconfig),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.path("sa.key"), "--root-ca-file="+c.path("ca.crt"),
		"--cluster-signing-cert-file="+c.path("ca.crt"), "--cluster-signing-key-file="+c.path("ca.key"),
		"--service-cluster-ip-range="+serviceRange,
	))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		c, err := o.Config(ctx, all, off, aliases)
		if err != nil {
			return err
		}
		return controllermanager.Run(ctx, c.Complete())
	}, nil
}

func newScheduler(kubeconfig string) (runner, error) {
	o := scheduleroptions.NewOptions()
	if err := parse("kube-scheduler", *o.Flags, clientFlags(kubeconfig)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		c, s, err := scheduler.Setup(ctx, o)
		if err != nil {
			return err
		}
		return scheduler.Run(ctx, c, s)
	}, nil
}
