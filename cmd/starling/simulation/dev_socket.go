package simulation

import (
	"context"
	"os"
	"time"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/dev"
	"github.com/starling-operator/starling/runtime/logs"
)

// answer serves the admin API of the simulated cluster, on a socket beside that of a starling run. stop ends it.
func (f *devFlags) answer(ctx context.Context, loop *dev.Loop, kept *logs.Buffer) (stop func(), err error) {
	if err := f.instance.MakeStateDir(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // a process without a host has no name
	replica := status.Replica{Name: host, Leader: true, Ready: true, Version: f.version, Simulated: true, Since: time.Now()}
	srv, err := admin.New(admin.Options{
		Socket: f.instance.Socket(), Name: f.instance.Name, LogLevel: process.SetLogLevel,
		Status: loop.Status, Explain: loop.Explain, Parents: loop.Parents, Queues: loop.Queues, RunNow: loop.RunNow, Snapshots: loop.Snapshots,
		RecordsKey: func(context.Context) ([]byte, error) { return nil, instance.ErrNoDevRecords },
		Replica: func() status.Replica {
			r := replica
			r.Generation, r.ReloadFailed = loop.InForce()
			return r
		},
		Logs: kept.Lines,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Run(ctx) // who asks is told that nobody answers any more
	}()
	return func() { cancel(); <-ended }, nil
}
