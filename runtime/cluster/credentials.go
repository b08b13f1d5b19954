package cluster

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"sync"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// readFilesAgain has clients made from a configuration read the files of the token and of the authority again as
// soon as the API server refuses the one, or shows a certificate of another authority.
func readFilesAgain(config *rest.Config) {
	if config.CAFile != "" && len(config.CAData) == 0 && config.Transport == nil {
		plain := rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &freshAuthority{config: plain, next: next} })
	}
	if config.BearerTokenFile != "" {
		// client-go reads it every minute, and goes on with a token that is refused until then.
		config.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(config.BearerTokenFile)))
		config.BearerToken, config.BearerTokenFile = "", ""
	}
}

// freshAuthority reads the file of the certificate authority again once a server shows a certificate of an
// authority that is not known. client-go reads it every five minutes, and the Lease is lost long before that.
type freshAuthority struct {
	config *rest.Config

	mu   sync.Mutex
	data []byte // the authorities that next goes by, as far as known
	next http.RoundTripper
}

// RoundTrip sends the request. One that has met an unknown authority fails; those after it go by the file.
func (f *freshAuthority) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	next := f.next
	f.mu.Unlock()
	resp, err := next.RoundTrip(r)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		f.renew(next)
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the connections below.
func (f *freshAuthority) WrappedRoundTripper() http.RoundTripper {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// renew replaces a transport by one that goes by the file as it is now. A file that is not there, or holds no
// certificates, changes nothing.
func (f *freshAuthority) renew(old http.RoundTripper) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := os.ReadFile(f.config.CAFile)
	if err != nil || f.next != old || bytes.Equal(data, f.data) {
		return
	}
	config := rest.AnonymousClientConfig(f.config)
	config.TLSClientConfig = f.config.TLSClientConfig
	config.UserAgent, config.CAFile, config.CAData = "", "", data
	next, err := rest.TransportFor(config)
	if err != nil {
		return
	}
	f.data, f.next = data, next
	utilnet.CloseIdleConnectionsFor(old)
}
