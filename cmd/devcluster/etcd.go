package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
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

// compact drops the history of etcd at each signal, and says on out up to which
// revision: who then asks for what was before is told that it is gone. The API server
// does the same every five minutes. It returns when ctx ends.
func compact(ctx context.Context, e *embed.Etcd, signals <-chan os.Signal, out io.Writer) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
		}
		revision := e.Server.KV().Rev()
		_, err := e.Server.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: revision, Physical: true})
		if err != nil {
			return fmt.Errorf("compact at revision %d: %w", revision, err)
		}
		if _, err := fmt.Fprintf(out, "compacted: etcd up to revision %d\n", revision); err != nil {
			return err
		}
	}
}
