package record

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
)

// use is [cluster.SecretKey].Use of the key of records: it is in the Secret "<name>-records".
const use = "records"

// FetchKey reads the key of an instance from its Secret. Without one the error says so.
func FetchKey(ctx context.Context, k cluster.SecretKey) (*Key, error) {
	k.Use = use
	key, err := readKey(ctx, k)
	if err == nil && key == nil {
		return nil, fmt.Errorf("there is no %s with the key of its records", k.Ref())
	}
	return key, err
}

// MakeKey reads the key of an instance, or makes it. Only the holder of the Lease may
// call it. [ErrOff] is in the chain of its error when that is forbidden.
func MakeKey(ctx context.Context, k cluster.SecretKey) (*Key, error) {
	k.Use = use
	key, err := readKey(ctx, k)
	if err == nil && key == nil {
		if key, err = NewKey(); err == nil {
			err = k.Create(ctx, key.raw, nil)
		}
		if err == nil { // another process may have been sooner
			key, err = readKey(ctx, k)
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w (%w)", err, ErrOff)
	case err == nil && key == nil:
		return nil, fmt.Errorf("%s went away as soon as it was made", k.Ref())
	}
	return key, err
}

// readKey returns nil when there is no Secret.
func readKey(ctx context.Context, k cluster.SecretKey) (*Key, error) {
	raw, _, err := k.Read(ctx)
	if err != nil || raw == nil {
		return nil, err
	}
	key, err := ParseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%s holds no key of records in data.key; delete it, and a new one is made", k.Ref())
	}
	return key, nil
}
