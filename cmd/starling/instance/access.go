package instance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// Access says where the cluster is.
type Access struct {
	kubeconfig string
	context    string
	// qps and burst bound the requests; 0: the defaults of package cluster.
	qps   float32
	burst int
	// as is the user that the requests are made for; "": that of the kubeconfig.
	as string
	// Patient says that an API server which is in trouble, or away, is no error: it is asked again.
	Patient bool
}

// AddFlags declares --kubeconfig and --context.
func (a *Access) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&a.kubeconfig, "kubeconfig", "", "`file` that says where the cluster is (default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount)")
	fs.StringVar(&a.context, "context", "", "`context` of the kubeconfig (default: its current one)")
}

// AddLimits declares --kube-api-qps and --kube-api-burst.
func (a *Access) AddLimits(fs *pflag.FlagSet) {
	fs.Float32Var(&a.qps, "kube-api-qps", cluster.DefaultQPS, "requests per second that are sent to the API server at most, those of all hooks and releases together")
	fs.IntVar(&a.burst, "kube-api-burst", 0, "`requests` that may be sent at once, above --kube-api-qps (default: twice --kube-api-qps)")
}

// CheckLimits refuses limits that would let no request through.
func (a *Access) CheckLimits() error {
	if !(a.qps > 0) {
		return fmt.Errorf("--kube-api-qps %v lets no request through; give a number above 0, as %d", a.qps, cluster.DefaultQPS)
	}
	if a.burst < 0 {
		return fmt.Errorf("--kube-api-burst %d lets no request through; give a number above 0, or leave it out for twice --kube-api-qps", a.burst)
	}
	return nil
}

// Impersonate returns the access of another user, for many questions.
func (a Access) Impersonate(user string) Access {
	a.as, a.qps = user, 200
	return a
}

// Connect finds the API server and makes sure that it answers and has our
// namespace. Requests go through wrap, which may be nil.
func (a *Access) Connect(ctx context.Context, namespace string, log zerolog.Logger, wrap func(http.RoundTripper) http.RoundTripper) (*cluster.Client, error) {
	config, source, err := cluster.LoadConfig(a.kubeconfig, a.context)
	if err != nil {
		return nil, err
	}
	config.Impersonate.UserName = a.as
	log.Debug().Str("source", source).Str("server", config.Host).Msg("uses this cluster")
	if wrap != nil {
		config.Wrap(wrap)
	}
	looking, end := ctx, context.CancelFunc(func() {})
	if a.Patient {
		looking, end = context.WithTimeout(ctx, patience)
	}
	defer end()
	err = cluster.CheckReachable(looking, config)
	borne := err != nil && ctx.Err() == nil && a.bears(err, log)
	if err != nil && !borne {
		return nil, err
	}
	client, err := cluster.New(cluster.Options{Config: config, QPS: a.qps, Burst: a.burst, Log: log})
	if err != nil {
		return nil, err
	}
	if borne {
		return client, nil // without the namespace the Lease cannot be had
	}
	ns, err := client.Get(looking, effect.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace})
	switch {
	case apierrors.IsForbidden(err):
		// It exists, even if this user may not look at it.
	case err != nil && ctx.Err() == nil && a.bears(err, log):
	case err != nil:
		return nil, err
	case ns == nil:
		return nil, fmt.Errorf("namespace %s does not exist; create it (kubectl create namespace %s) or name another with --namespace",
			namespace, namespace)
	}
	return client, nil
}

// patience is how long a process that bears an API server which is away waits for its first answers. It tells a
// kubelet of its health only then.
const patience = 10 * time.Second

// bears says whether a process goes on in spite of an error: one that works for long asks again. If it ended, the
// kubelet would wait longer each time before it starts it again, up to five minutes.
func (a *Access) bears(err error, log zerolog.Logger) bool {
	if !a.Patient || !cluster.InTrouble(err) {
		return false
	}
	log.Warn().Err(err).Msg("the API server is in trouble, or this is not its address; it is asked again until it answers")
	return true
}
