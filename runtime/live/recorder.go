package live

import (
	"context"
	"path/filepath"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/record"
)

// RecordsDir is the folder of the records of runs in the folder of an instance.
func RecordsDir(stateDir string) string { return filepath.Join(stateDir, "records") }

// openRecorder prepares the recorder of runs. The process that leads makes the key.
func (d *Driver) openRecorder(instance string) {
	d.process = record.Process(d.since, d.identity)
	d.recordsKey = cluster.SecretKey{Client: d.o.Client, Namespace: d.o.Namespace, Name: d.o.Name, Instance: instance}
	d.recorder = record.New(record.Options{
		Store: record.StoreOptions{Dir: RecordsDir(d.o.StateDir), Process: d.process, Version: d.o.Version},
		Key: func(ctx context.Context) (*record.Key, error) {
			if d.holder.stands() {
				return record.FetchKey(ctx, d.recordsKey)
			}
			return record.MakeKey(ctx, d.recordsKey)
		},
		Log:   d.o.Log,
		Count: func(outcome string, n int) { d.metrics.records.WithLabelValues(outcome).Add(float64(n)) },
	})
}

// RecordsKey is the key of the records, for `starling get runs` and `starling replay`. A process that stands by reads
// it in the cluster: its folder may hold runs of the process before it.
func (d *Driver) RecordsKey(ctx context.Context) ([]byte, error) {
	key, err := d.recorder.Key()
	if err != nil && d.holder.stands() {
		key, err = record.FetchKey(ctx, d.recordsKey)
	}
	if err != nil {
		return nil, err
	}
	return key.Bytes(), nil
}
