package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// distance is how much longer a request and its answer take in the section distance.
const distance = 10 * time.Millisecond

// measureDistance measures sections once more with the API server far away, for either side.
// Those that need no distance have their aims elsewhere.
func measureDistance(ctx context.Context, b *bench) (err error) {
	config, err := adminConfig(b.kubeconfig)
	if err != nil {
		return err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return err
	}
	f, err := startFar(target.Host, distance)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	kubeconfig, err := b.kubeconfigOf("far", "https://"+f.ln.Addr().String(), nil)
	if err != nil {
		return err
	}
	defer b.through(kubeconfig)()
	b.far = true
	defer func() { b.far = false }()
	from := len(b.table.rows)
	for _, measure := range []func(context.Context, *bench) error{measureEvents, measureBurst, measureEach, measureModules} {
		if err := measure(ctx, b); err != nil {
			return err
		}
	}
	for i := range b.table.rows[from:] {
		b.table.rows[from+i].aim = ""
	}
	if err := measureSets(ctx, b); err != nil {
		return err
	}
	for i := range b.table.rows[from:] {
		if r := &b.table.rows[from+i]; !strings.HasPrefix(r.what, "…") {
			r.what = fmt.Sprintf("%d ms away: %s", distance.Milliseconds(), r.what)
		}
	}
	return nil
}

// size is how many there are of something: on a whole run, far away, where everything takes
// longer, and with -quick.
func (b *bench) size(whole, far, quick int) int {
	switch {
	case b.quick:
		return quick
	case b.far:
		return far
	}
	return whole
}
