package operator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/httpserver"
	"github.com/starling-operator/starling/runtime/metrics"
)

// listenFlags say how metrics and health are served.
type listenFlags struct {
	address string
	certDir string
	clients string
	prefix  string
}

func (f *listenFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "listen", "127.0.0.1:9115", "`address` of /metrics, /healthz and /readyz; port 0 takes a free one")
	fs.StringVar(&f.prefix, "metrics-prefix", metrics.Prefix, "`text` that the names of Starling's own metrics begin with; those of hooks, go_* and process_* stay as they are")
	fs.StringVar(&f.certDir, "metrics-cert-dir", "", "`folder` with tls.crt and tls.key, re-read when they change, to serve that address over TLS (default: plain HTTP)")
	fs.StringVar(&f.clients, "metrics-client-ca", "", "`file` with the authorities, in PEM, of the certificate that a client shows who asks for /metrics; who shows none is refused (default: anybody may ask)")
}

// gatherer returns what /metrics shows of the registry.
func (f *listenFlags) gatherer(registry *prometheus.Registry) (prometheus.Gatherer, error) {
	if !regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`).MatchString(f.prefix) {
		return nil, fmt.Errorf("--metrics-prefix %q cannot begin the name of a metric; use letters, digits and _, as in addons_", f.prefix)
	}
	if slices.Contains([]string{"go_", "process_"}, f.prefix) {
		return nil, fmt.Errorf("--metrics-prefix %s is that of the metrics of Go and of the process; choose another one", f.prefix)
	}
	return metrics.Renamed(registry, f.prefix), nil
}

// receiveFlags say where requests for http.receive come in.
type receiveFlags struct {
	address, certs string
}

func (f *receiveFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "receive-address", "", "`address` where hooks receive HTTP requests (http.receive), as 0.0.0.0:8080; default: none")
	fs.StringVar(&f.certs, "receive-certs", "", "`folder` with tls.crt and tls.key to receive over TLS; default: plain HTTP, for an ingress that ends TLS")
}

// listen opens the address before anything is started; nil when there is none.
func (f *receiveFlags) listen(log zerolog.Logger) (*httpserver.Listener, error) {
	if f.address == "" {
		if f.certs != "" {
			return nil, errors.New("--receive-certs means nothing without --receive-address")
		}
		return nil, nil
	}
	ln, err := httpserver.Listen(f.address, f.certs)
	if err != nil {
		return nil, err
	}
	log.Info().Str("receive", ln.Addr().String()).Bool("tls", f.certs != "").Msg("receives requests for hooks")
	return ln, nil
}
