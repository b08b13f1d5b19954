package record

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

const (
	// keyData is the key in the Secret's data, recordsLabel the label that finds it.
	keyData      = "key"
	recordsLabel = "starling.dev/records"
)

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

func (o KeyOptions) ref() effect.Ref {
	return effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: o.Namespace, Name: o.Name + "-records"}
}

// read returns nil when there is no Secret. It lists, which the operator has to be
// allowed anyway.
func (o KeyOptions) read(ctx context.Context) (key *Key, err error) {
	secrets := cluster.Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	selector := effect.InstanceLabel + "=" + o.Instance + "," + recordsLabel
	_, err = o.Client.Each(ctx, secrets, o.Namespace, metav1.ListOptions{LabelSelector: selector}, func(obj map[string]any) error {
		meta, _ := obj["metadata"].(map[string]any)
		if meta["name"] != o.ref().Name {
			return nil
		}
		data, _ := obj["data"].(map[string]any)
		text, _ := data[keyData].(string)
		raw, err := base64.StdEncoding.DecodeString(text)
		if err == nil {
			key, err = ParseKey(raw)
		}
		if err != nil {
			return errBadSecret
		}
		return nil
	})
	if errors.Is(err, errBadSecret) {
		return nil, fmt.Errorf("%s holds no key of records in data.%s; delete it, and a new one is made", o.ref(), keyData)
	}
	return key, o.Client.Explain(err, "list", secrets, o.Namespace)
}

var errBadSecret = errors.New("no key")

func (o KeyOptions) create(ctx context.Context) error {
	key, err := NewKey()
	if err != nil {
		return err
	}
	// One that is there meanwhile stays: runs may be sealed with it already.
	_, err = o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteCreate, Ref: o.ref(), IfAbsent: true, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "starling.dev/records",
		"metadata": map[string]any{
			"name": o.ref().Name, "namespace": o.Namespace,
			"labels": map[string]any{effect.InstanceLabel: o.Instance, recordsLabel: "key"},
		},
		"data": map[string]any{keyData: base64.StdEncoding.EncodeToString(key.raw)},
	}})
	return err
}
