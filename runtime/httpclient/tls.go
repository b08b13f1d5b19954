package httpclient

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/starling-operator/starling/runtime/effect"
)

// tlsConfig is that of one request. Errors show nothing of its key.
func tlsConfig(r effect.Request) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.ServerName, InsecureSkipVerify: r.Insecure}
	if r.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(r.CA)) {
			return nil, &RefusedError{msg: "ca holds no certificate"}
		}
	}
	if r.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.CertKey))
		if err != nil {
			return nil, &RefusedError{msg: "cert and key are no certificate with its key"}
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
