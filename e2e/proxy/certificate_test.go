package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
)

// A client meets another certificate, and gets on once it knows the authority.
func TestRotate(t *testing.T) {
	_, p, ask := behind(t, 1)
	if got := text(ask("GET", list)); !strings.HasPrefix(got, "200") || p.Answered(200) != 1 {
		t.Error(got, p.Answered(200))
	}
	authority, err := p.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask("GET", list)
	for range 3 { // connections that are kept end in the middle of a request
		if err != nil && strings.Contains(err.Error(), "unknown authority") {
			break
		}
		_, err = ask("GET", list)
	}
	if err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client that does not know the new one: %v", err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(authority)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}}}
	if got := text(client.Get(p.server.URL + list)); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
}
