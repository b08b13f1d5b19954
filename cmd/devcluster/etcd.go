package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts a single-member etcd on a free port and returns when it serves.
func startEtcd(ctx context.Context, dir, log string) (*embed.Etcd, error) {
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls, c.AdvertiseClientUrls = free, free
	c.ListenPeerUrls, c.AdvertisePeerUrls = free, free
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	// The page cache survives a killed process, and nobody keeps this data
	// through a power cut.
	c.UnsafeNoFsync = true
	// One member has nobody to wait for: it elects itself in 0.1 s, not in 1 s.
	c.TickMs, c.ElectionMs = 10, 100
	c.LogLevel, c.LogOutputs = "warn", []string{log}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-time.After(startTimeout):
		err = errors.New("not ready after " + startTimeout.String())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("etcd: %w", err)
}
