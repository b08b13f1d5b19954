package main

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// The client goes by --kube-api-qps and --kube-api-burst.
func TestRequestsAreLimited(t *testing.T) {
	api := apitest.New(t)
	api.Put(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ops"}})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: api.Config().Host}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args  []string
		qps   float32
		burst int
	}{
		{nil, 1000, 2000},
		{[]string{"--kube-api-qps=0.01", "--kube-api-burst=8"}, 0.01, 8},
	} {
		var a access
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		a.addFlags(fs)
		a.addLimits(fs)
		if err := fs.Parse(append(tt.args, "--kubeconfig="+file)); err != nil {
			t.Fatal(err)
		}
		client, err := a.connect(t.Context(), "ops", zerolog.Nop(), nil)
		if err != nil {
			t.Fatal(err)
		}
		limit := client.Config().RateLimiter
		left := 0
		for left <= 2*tt.burst && limit.TryAccept() {
			left++
		}
		if limit.QPS() != tt.qps || tt.qps < 1 && (left == 0 || left >= tt.burst) {
			t.Errorf("%v: %v requests a second, %d are left", tt.args, limit.QPS(), left)
		}
	}
}
