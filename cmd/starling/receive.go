package main

import (
	"errors"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/httpserver"
)

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
