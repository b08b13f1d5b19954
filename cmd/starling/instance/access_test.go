package instance

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// kubeconfigOf writes a kubeconfig file of a server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := t.TempDir() + "/kubeconfig"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// The client goes by --kube-api-qps and --kube-api-burst.
func TestRequestsAreLimited(t *testing.T) {
	api := apitest.New(t)
	api.Put(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ops"}})
	file := kubeconfigOf(t, api.Config().Host)
	for _, tt := range []struct {
		args  []string
		qps   float32
		burst int
	}{
		{nil, 1000, 2000},
		{[]string{"--kube-api-qps=0.01", "--kube-api-burst=8"}, 0.01, 8},
	} {
		var a Access
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		a.AddFlags(fs)
		a.AddLimits(fs)
		if err := fs.Parse(append(tt.args, "--kubeconfig="+file)); err != nil {
			t.Fatal(err)
		}
		client, err := a.Connect(t.Context(), "ops", zerolog.Nop(), nil)
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

// A process that works for long begins while the API server is in trouble; a command says so and ends.
func TestConnectToAServerInTrouble(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: no leader","code":500}`))
	}))
	defer server.Close()
	file := kubeconfigOf(t, server.URL)
	for _, patient := range []bool{false, true} {
		a := Access{kubeconfig: file, Patient: patient}
		client, err := a.Connect(t.Context(), "ops", zerolog.Nop(), nil)
		if patient && (err != nil || client == nil) || !patient && (err == nil || !strings.Contains(err.Error(), "etcdserver: no leader")) {
			t.Errorf("patient %t: %v", patient, err)
		}
	}
}

// A process that works for long begins while nobody answers at the address of the API server, and says so in one line,
// which names it: it may be wrong. A command ends with that line.
func TestConnectToAServerThatIsAway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	file := kubeconfigOf(t, server.URL)
	for _, patient := range []bool{false, true} {
		var log bytes.Buffer
		a := Access{kubeconfig: file, Patient: patient}
		client, err := a.Connect(t.Context(), "ops", zerolog.New(&log).Level(zerolog.WarnLevel), nil)
		want := "cannot reach the API server at " + server.URL + ": connection refused"
		switch {
		case !patient && (err == nil || err.Error() != want):
			t.Errorf("a command: %v", err)
		case patient && (err != nil || client == nil || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), want) || !strings.Contains(log.String(), "it is asked again until it answers")):
			t.Errorf("a process: %v, %s", err, log.String())
		}
	}
}
