package operator

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/runtime/webhook"
)

// defaultWebhookAddress is where webhooks are served: on all addresses, because the
// API server comes from outside.
const defaultWebhookAddress = ":9443"

// webhookFlags are the flags of `starling run` for k8s.validate, k8s.mutate and
// k8s.convert.
type webhookFlags struct {
	address string
	service string
	url     string
	certDir string
	clients string
}

func (f *webhookFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "webhook-address", "",
		"`address` where the API server's requests to hooks are answered, whether a hook needs it or not (default: "+defaultWebhookAddress+" when one does)")
	fs.StringVar(&f.service, "webhook-service", "",
		"`NAME` or NAME:PORT of the Service, in the operator's namespace, that leads the API server to that address (default: the instance's name, port 443)")
	fs.StringVar(&f.url, "webhook-url", "",
		"`URL` instead of a Service, for a starling outside of the cluster: https://HOST:PORT")
	fs.StringVar(&f.certDir, "webhook-cert-dir", "",
		"`folder` with tls.crt, tls.key and ca.crt, re-read when they change (default: own certificates, kept in a Secret)")
	fs.StringVar(&f.clients, "webhook-client-ca", "",
		"`file` with the authorities, in PEM, of the certificate that the API server shows when it asks for a review; who shows none is refused (default: anybody may ask)")
}

// options checks the flags. podFile is there in a pod only.
func (f *webhookFlags) options(name, podFile string) (webhook.Endpoint, error) {
	o := webhook.Endpoint{Address: f.address, Always: f.address != "", CertDir: f.certDir, ClientCA: f.clients}
	o.Address = cmp.Or(o.Address, defaultWebhookAddress)
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		return o, fmt.Errorf("--webhook-address %q is no address; give HOST:PORT, as 127.0.0.1:9443", f.address)
	}
	if f.url != "" && f.service != "" {
		return o, fmt.Errorf("--webhook-url and --webhook-service exclude each other")
	}
	if f.certDir != "" {
		if info, err := os.Stat(f.certDir); err != nil || !info.IsDir() {
			return o, fmt.Errorf("--webhook-cert-dir %s is no folder", f.certDir)
		}
	}
	service := f.service
	if service == "" {
		if _, err := os.Stat(podFile); err != nil && f.url == "" {
			o.Unreachable = "outside of a cluster the API server does not find this starling by a Service; give --webhook-url https://HOST:PORT, or --webhook-service if there is one that leads here"
		}
		// A Service's name holds no dots.
		service = strings.ReplaceAll(name, ".", "-")
		if len(validation.IsDNS1035Label(service)) > 0 {
			service = instance.DefaultName
		}
	}
	var err error
	o.Reach, err = webhook.ParseReach(service, f.url)
	return o, err
}
