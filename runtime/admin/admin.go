// Package admin answers the questions of people and machines about one running
// starling: over HTTP its metrics and its health, over a local unix socket the
// admin API that `starling get` asks.
//
// The socket is the only way to the admin API: who may open it is decided by the
// file system (a folder of mode 0700, a socket of mode 0600), not by a password.
package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/httplimit"
	"github.com/starling-operator/starling/runtime/tlsfiles"
)

const (
	// stopWithin bounds the graceful stop: what is then still answering is cut off.
	stopWithin = 5 * time.Second
	// headerLimit is far above what Prometheus, a kubelet or starling get send.
	headerLimit = 16 << 10
)

// Options say what a [Server] serves, and where. All fields but
// CertDir, ClientCA, Locked and Log are needed; without Listen those are not needed either that
// only the HTTP address serves.
type Options struct {
	// Listen is the HTTP address, HOST:PORT; port 0 takes a free one, and without an address
	// there is the socket alone.
	Listen string
	// CertDir is a folder with tls.crt and tls.key, with which that address speaks TLS; empty:
	// it speaks plain HTTP.
	CertDir string
	// ClientCA is a file with the authorities of which those must show a certificate who ask for
	// /metrics; empty: anybody may ask. It needs CertDir.
	ClientCA string
	// Metrics is what /metrics shows.
	Metrics prometheus.Gatherer
	// Healthy says whether /healthz answers 200, and if not, why not.
	Healthy func() (ok bool, reason string)
	// Ready says whether /readyz answers 200, and if not, why not.
	Ready func() (ok bool, reason string)
	// Released says whether /readyz/modules answers 200, and if not, why not.
	Released func() (ok bool, reason string)
	// Socket is the path of the admin API's unix socket. Its folder is made
	// with mode 0700; one that exists must be ours and closed to others.
	Socket string
	// Locked says that this process holds the [Lock] of the socket. Else the server takes it.
	Locked bool
	// Name is the instance's --name, for messages.
	Name string
	// LogLevel sets the least level that is logged, unless it is empty, and returns what it
	// was. An error says which there are.
	LogLevel func(level string) (was string, err error)
	// Status is what GET /v1/status of the admin API answers.
	Status func(context.Context) (status.Status, error)
	// Explain is what GET /v1/explain is made from, by the module's name.
	Explain func(ctx context.Context, module string) (values.ExplainInput, error)
	// Parents is what GET /v1/parents answers, by the module's name and the key of a parent.
	Parents func(ctx context.Context, module, key string) ([]status.Parent, error)
	// Queues is what GET /v1/queues answers.
	Queues func(context.Context) ([]status.Queue, error)
	// RunNow has the hooks of a module run, or with an id that one, as POST /v1/run asks for, and returns the ids of
	// those that will.
	RunNow func(ctx context.Context, module, hook string) ([]string, error)
	// Snapshots is what GET /v1/snapshots answers, by the hook's id.
	Snapshots func(ctx context.Context, hook string) ([]status.Snapshot, error)
	// Logs yields the lines that GET /v1/logs answers with, each with its end: the last tail, or all
	// with a negative one, of a module, or of all with "", and with follow those that come until
	// ctx ends.
	Logs func(ctx context.Context, module string, tail int, follow bool) iter.Seq[[]byte]
	// RecordsKey is what GET /v1/records-key answers.
	RecordsKey func(context.Context) ([]byte, error)
	// RecordsDir is the folder of the records that GET /v1/records and /v1/record answer with; empty: there are none.
	RecordsDir string
	// Replica is what GET /v1/replica answers.
	Replica func() status.Replica
	// Log gets what goes wrong while serving. The zero value logs nothing.
	Log zerolog.Logger
}

// Server listens from [New] on and answers while [Server.Run] runs.
type Server struct {
	log      zerolog.Logger
	web      *http.Server
	admin    *http.Server
	webLn    net.Listener
	sock     *socket
	closed   sync.Once
	patience time.Duration // stopWithin but in tests
}

// New opens the HTTP address and the socket, so that a port in use or a second
// starling with the same state folder is an error before anything is started.
// Requests wait until [Server.Run]. A caller that never calls Run calls [Server.Close].
func New(o Options) (*Server, error) {
	sock, err := openSocket(o.Socket, o.Name, o.Locked)
	if err != nil {
		return nil, err
	}
	s := &Server{log: o.Log, sock: sock, patience: stopWithin}
	if o.Listen != "" {
		if s.webLn, err = listenWeb(o); err != nil {
			sock.Close()
			return nil, err
		}
		s.web = s.newHTTP(webHandler(o))
	}
	stopping, stop := context.WithCancel(context.Background())
	s.admin = s.newHTTP(adminHandler(stopping, o))
	s.admin.RegisterOnShutdown(stop)
	return s, nil
}

// listenWeb opens the HTTP address.
func listenWeb(o Options) (net.Listener, error) {
	if o.CertDir == "" {
		if o.ClientCA != "" {
			return nil, errors.New("--metrics-client-ca needs --metrics-cert-dir: without TLS nobody shows a certificate")
		}
		return Listen(o.Listen, "--listen")
	}
	pair, err := tlsfiles.OpenPair(o.CertDir, "--metrics-cert-dir")
	if err != nil {
		return nil, err
	}
	config := pair.Config()
	if o.ClientCA != "" {
		clients, err := tlsfiles.OpenAuthorities(o.ClientCA, "--metrics-client-ca")
		if err != nil {
			return nil, err
		}
		config = clients.Ask(config, config.NextProtos...)
	}
	ln, err := Listen(o.Listen, "--listen")
	if err != nil {
		return nil, err
	}
	return tls.NewListener(ln, config), nil
}

// newHTTP returns a server whose every phase has an end: no client holds a
// connection for ever by being slow.
func (s *Server) newHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    headerLimit,
		ErrorLog:          errorLog(s.log),
	}
}

// Addr returns the HTTP address, HOST:PORT, with its real port. It needs one.
func (s *Server) Addr() string { return s.webLn.Addr().String() }

// Run answers requests until ctx ends, then lets those under way finish, for five
// seconds at most, and removes the socket. It returns nil after such a stop, and
// an error when one of the two listeners broke. Run may be called once.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 2)
	var serving sync.WaitGroup
	serve := func(what string, srv *http.Server, ln net.Listener) {
		serving.Go(func() {
			if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s stopped: %w", what, err)
			}
		})
	}
	servers := []*http.Server{s.admin}
	if s.web != nil {
		serve("http server on "+s.Addr(), s.web, s.webLn)
		servers = append(servers, s.web)
	}
	serve("admin socket "+s.sock.path, s.admin, httplimit.Listener(s.sock, httplimit.MostConnections))

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	// The stop must outlive ctx, which has ended.
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	for _, srv := range servers {
		serving.Go(func() {
			if srv.Shutdown(stop) != nil {
				srv.Close() // out of patience: what is left is cut off
			}
		})
	}
	serving.Wait()
	s.Close()
	return err
}

// Close stops listening and removes the socket, without waiting for requests.
func (s *Server) Close() {
	s.closed.Do(func() {
		if s.webLn != nil {
			s.webLn.Close()
		}
		s.sock.Close()
	})
}

// Listen opens a TCP address that a flag of that name gives, for a bounded number of connections, with errors that
// say what to do.
func Listen(addr, flag string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, fmt.Errorf("cannot listen on %q: not an address; give %s HOST:PORT, as 127.0.0.1:8080", addr, flag)
	}
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return httplimit.Listener(ln, httplimit.MostConnections), nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: port in use; choose another with %s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: not allowed; choose a port above 1023 with %s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: not an address of this machine; choose another with %s", addr, flag)
	}
	if bad := new(net.AddrError); errors.As(err, &bad) {
		err = errors.New(bad.Err) // without the address once more
	}
	return nil, fmt.Errorf("cannot listen on %s: %w; choose another with %s", addr, cause(err), flag)
}

// cause returns the innermost text of a network or file error: the outer layers
// repeat the address or the path, which the caller names anyway.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// MakeFolder makes a folder, with its parents, that only this user can open. A folder that
// exists is closed to its group, to which a kubelet opens all of a volume (fsGroup); another
// user's folder, or one open to others, is an error.
func MakeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("cannot make folder %s: %w; choose another with --state-dir", path, cause(err))
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("cannot read folder %s: %w; choose another with --state-dir", path, cause(err))
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; choose another with --state-dir", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() {
		return fmt.Errorf("folder %s belongs to another user (uid %d); choose another with --state-dir", path, st.Uid)
	}
	mode := info.Mode().Perm()
	if mode&0o077 == 0 || mode&0o007 == 0 && os.Chmod(path, 0o700) == nil {
		return nil
	}
	return fmt.Errorf("folder %s is open to others (mode %04o); run: chmod 700 %s", path, mode, path)
}

// folderOf returns the folder of a file, as a clean path.
func folderOf(file string) string { return filepath.Dir(filepath.Clean(file)) }
