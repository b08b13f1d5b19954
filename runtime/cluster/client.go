// Package cluster is Starling's one client of the API server: live reads, writes
// by server-side apply, the raw lists and watches that runtime/watch reads, what
// is kept in Secrets, and the shared discovery and REST mapper that Helm uses
// too. All of it goes through one HTTP transport, one rate limit and one fence.
package cluster

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/starling-operator/starling/runtime/effect"
)

// DefaultQPS is the limit of requests a second where none is given.
const DefaultQPS = 1000

const (
	defaultFieldManager = "starling"
	// requestTimeout bounds one request whose context has no deadline. Watches
	// are not bounded by it.
	requestTimeout = 30 * time.Second
)

// Options says how to reach the API server.
type Options struct {
	// Config is where the API server is and who we are. It is copied. Required.
	Config *rest.Config
	// QPS is the client-side limit in requests a second; 0 means [DefaultQPS], and less than 0 none. The real
	// limit is the server's priority and fairness.
	QPS float32
	// Burst is how many requests may exceed QPS at once; 0 means twice QPS, and at least one.
	Burst int
	// FieldManager is the manager of writes that name none; "" means "starling".
	FieldManager string
	// Log takes the warnings that the API server sends with its answers.
	Log zerolog.Logger
}

// Client talks to one API server. It is safe for concurrent use. Make it with
// [New].
type Client struct {
	config    *rest.Config
	unfenced  *rest.Config
	manager   string
	rest      *rest.RESTClient
	streams   http.RoundTripper // of HTTP/1.1, of which a connection can become a WebSocket
	dynamic   dynamic.Interface
	discovery *discoveryCache
	mapper    *mapper
	fence     *fence
	seal      *effect.Seal
	others    func(effect.Ref) bool

	mu     sync.Mutex
	groups map[string]*groupVersion // by apiVersion
}

// New makes a client. It does no I/O: an API server that cannot be reached shows
// in the first call, or in [CheckReachable].
func New(o Options) (*Client, error) {
	if o.Config == nil {
		return nil, fmt.Errorf("no API server is configured")
	}
	if err := askConnections(); err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", o.Config.Host, err)
	}
	unfenced := rest.CopyConfig(o.Config)
	unfenced.UserAgent = cmp.Or(unfenced.UserAgent, "starling")
	unfenced.QPS = cmp.Or(o.QPS, DefaultQPS)
	unfenced.Burst = o.Burst
	if unfenced.Burst == 0 {
		unfenced.Burst = max(1, int(2*unfenced.QPS))
	}
	c := &Client{
		unfenced: unfenced,
		manager:  o.FieldManager,
		fence:    newFence(),
		groups:   map[string]*groupVersion{},
	}
	c.manager = cmp.Or(c.manager, defaultFieldManager)
	unfenced.WarningHandlerWithContext = &warnings{log: o.Log, seen: map[string]bool{}}

	readFilesAgain(unfenced)

	cfg := rest.CopyConfig(unfenced)
	// One limit for all clients made from this configuration; the Lease has its
	// own, so that a burst of writes cannot cost it.
	cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, cfg.Burst)
	if cfg.QPS < 0 {
		cfg.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	}
	turn := make(chan struct{}, 1)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if cfg.Transport == nil { // a given one need not tell of its connections
			next = &sharedConnect{turn: turn, next: next, patience: connectPatience}
		}
		return &fencedTransport{fence: c.fence, next: next}
	})
	c.config = cfg

	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", cfg.Host, err)
	}
	old := rest.CopyConfig(cfg)
	old.NextProtos = []string{"http/1.1"}
	if c.streams, err = rest.TransportFor(old); err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", cfg.Host, err)
	}
	raw := rest.CopyConfig(cfg)
	raw.APIPath = "/"
	raw.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw.ContentType, raw.AcceptContentTypes = jsonType, jsonType
	if c.rest, err = rest.UnversionedRESTClientForConfigAndClient(raw, httpClient); err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", cfg.Host, err)
	}
	if c.dynamic, err = dynamic.NewForConfigAndClient(cfg, httpClient); err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", cfg.Host, err)
	}
	// Callers of discovery give no context, and our own client is not given the
	// timeout that client-go's has.
	bounded := *httpClient
	bounded.Timeout = requestTimeout
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, &bounded)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the connection to %s: %w", cfg.Host, err)
	}
	c.discovery = &discoveryCache{CachedDiscoveryInterface: memory.NewMemCacheClient(disco)}
	c.mapper = &mapper{
		DeferredDiscoveryRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(c.discovery),
		client:                      c,
	}
	return c, nil
}

// Config returns the configuration of the client, its fence included: writes
// through it (those of Helm) stop at [Client.Fence] as well. Do not change it.
func (c *Client) Config() *rest.Config { return c.config }

// UnfencedConfig returns a copy of the configuration without the fence. It is for
// the Lease alone, which is given back after everything else has stopped.
func (c *Client) UnfencedConfig() *rest.Config { return rest.CopyConfig(c.unfenced) }

// UseSeal gives the client the seal that signs and checks marks. It is called before anything else: without a seal no
// mark is signed, and all are believed.
func (c *Client) UseSeal(s *effect.Seal) { c.seal = s }

// UseOthers sets what says whether another Starling goes by an object. The client does not write such an object. It is
// called before anything else.
func (c *Client) UseOthers(others func(effect.Ref) bool) { c.others = others }

// Others is what [Client.UseOthers] was given.
func (c *Client) Others(ref effect.Ref) bool { return c.others != nil && c.others(ref) }

// Seal is that of [Client.UseSeal], nil for none.
func (c *Client) Seal() *effect.Seal {
	if c == nil {
		return nil
	}
	return c.seal
}

// Dynamic returns client-go's dynamic client on the shared transport.
func (c *Client) Dynamic() dynamic.Interface { return c.dynamic }

// Discovery returns the discovery cache that all releases share. Its Invalidate
// reads again at most once in ten seconds, because Helm calls it for every
// action; [Client.Refresh] forgets at once.
func (c *Client) Discovery() discovery.CachedDiscoveryInterface { return c.discovery }

// Mapper returns the REST mapper that all releases share. A kind with a version
// is looked up in its group-version alone, see [Client.Mapping].
func (c *Client) Mapper() meta.ResettableRESTMapper { return c.mapper }

// Refresh forgets what discovery and the mapper know, for instance after CRDs
// were applied. The next question asks the API server again.
func (c *Client) Refresh() {
	c.mu.Lock()
	c.groups = map[string]*groupVersion{}
	c.mu.Unlock()
	c.discovery.forget()
	c.mapper.DeferredDiscoveryRESTMapper.Reset()
}

// Close closes the connections that are idle. Requests that are under way go on.
func (c *Client) Close() {
	utilnet.CloseIdleConnectionsFor(c.rest.Client.Transport)
	utilnet.CloseIdleConnectionsFor(c.streams)
}
