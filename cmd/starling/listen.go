package main

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

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
