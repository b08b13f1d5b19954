package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/httpserver"
)

// openReceive prepares the server of http.receive. It listens from the start, and
// answers 503 while this process does not hold the Lease.
func (d *Driver) openReceive(ln net.Listener) {
	if ln == nil {
		d.warnOfPaths()
		return
	}
	d.receive = httpserver.New(httpserver.Options{
		Namespace: d.o.Namespace, Reader: d.o.Client, Log: d.o.Log,
		Answer: func(ctx context.Context, hook string, r *builtins.Request) (builtins.Response, error) {
			response, err := d.Request(ctx, hook, r)
			if errors.Is(err, errStopping) {
				err = fmt.Errorf("%w: %w", err, engine.ErrNotReady)
			}
			return response, err
		},
		Observe: func(module, hook string, code int) {
			d.metrics.received.WithLabelValues(module, hook, strconv.Itoa(code)).Inc()
		},
	})
	d.receive.Know(d.generation.Load())
	d.requests.listeners = append(d.requests.listeners, d.receive.Serve)
}

// warnOfPaths names hooks that nobody can reach.
func (d *Driver) warnOfPaths() {
	for _, m := range d.generation.Load().All() {
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				if b.Receive != nil {
					d.log(m.Name, h.ID).Log(builtins.LevelWarn, "receives no requests at "+b.Receive.Path+": run starling with --receive-address", nil)
				}
			}
		}
	}
}

// startReceive serves until the function that it returns is called.
func (d *Driver) startReceive() (stop func()) {
	if d.receive == nil {
		return func() {}
	}
	d.receive.Start(d.o.Receive)
	return d.receive.Stop
}
