package record

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// KeyOptions says where the key of an instance is kept: in the Secret
// "<name>-records" of the operator's namespace.
type KeyOptions struct {
	Client *cluster.Client
	// Namespace and Name are the instance, Instance the value of its label.
	Namespace, Name, Instance string
}

func (o KeyOptions) kept() cluster.SecretKey {
	return cluster.SecretKey{Client: o.Client, Namespace: o.Namespace, Name: o.Name, Instance: o.Instance, Use: "records"}
}

// FetchKey reads the key of an instance from its Secret. Without one the error says so.
func FetchKey(ctx context.Context, o KeyOptions) (*Key, error) {
	key, err := o.read(ctx)
	if err == nil && key == nil {
		return nil, fmt.Errorf("there is no %s with the key of its records", o.ref())
	}
	return key, err
}

// MakeKey reads the key of an instance, or makes it. Only the holder of the Lease may
// call it. [ErrOff] is in the chain of its error when that is forbidden.
func MakeKey(ctx context.Context, o KeyOptions) (*Key, error) {
	key, err := o.read(ctx)
	if err == nil && key == nil {
		if err = o.create(ctx); err == nil {
			key, err = o.read(ctx)
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w (%w)", err, ErrOff)
	case err == nil && key == nil:
		return nil, fmt.Errorf("%s went away as soon as it was made", o.ref())
	}
	return key, err
}

func (o KeyOptions) ref() effect.Ref { return o.kept().Ref() }

// read returns nil when there is no Secret.
func (o KeyOptions) read(ctx context.Context) (*Key, error) {
	raw, _, err := o.kept().Read(ctx)
	if err != nil || raw == nil {
		return nil, err
	}
	key, err := ParseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%s holds no key of records in data.key; delete it, and a new one is made", o.ref())
	}
	return key, nil
}

func (o KeyOptions) create(ctx context.Context) error {
	key, err := NewKey()
	if err != nil {
		return err
	}
	return o.kept().Create(ctx, key.raw, nil)
}
