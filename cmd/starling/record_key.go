package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/record"
)

// recordKeyFlags say where the key of the records is.
type recordKeyFlags struct {
	access access
	file   string
}

func (f *recordKeyFlags) addFlags(fs *pflag.FlagSet) {
	f.access.addFlags(fs)
	fs.StringVar(&f.file, "key-file", "", "`file` with the key of the records, as data.key of the Secret <name>-records has it (default: asks the starling that runs here, then the cluster)")
}

// nearby returns the key when it is there without asking a cluster: nil when it is not.
func (f *recordKeyFlags) nearby(ctx context.Context, i *instance) (*record.Key, error) {
	if f.file != "" {
		data, err := os.ReadFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--key-file: %w", err)
		}
		key, err := record.ParseKey(data)
		if err != nil {
			return nil, fmt.Errorf("--key-file %s: %w", f.file, err)
		}
		return key, nil
	}
	data, err := admin.NewClient(admin.ClientOptions{Socket: i.socket()}).RecordsKey(ctx)
	if err != nil {
		return nil, nil // it may be elsewhere
	}
	return record.ParseKey(data)
}

// key returns the key, from wherever it is.
func (f *recordKeyFlags) key(ctx context.Context, i *instance) (*record.Key, error) {
	key, err := f.nearby(ctx, i)
	if key != nil || err != nil {
		return key, err
	}
	client, err := f.access.connect(ctx, i.Namespace, zerolog.Nop(), nil)
	if err == nil {
		key, err = record.FetchKey(ctx, record.KeyOptions{
			Client: client, Namespace: i.Namespace, Name: i.Name, Instance: effect.Instance{Namespace: i.Namespace, Name: i.Name}.Label(),
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the records of %s/%s are sealed, and their key is not at hand: no starling runs here with this --state-dir, and %w; give --key-file", i.Namespace, i.Name, err)
	}
	return key, nil
}
