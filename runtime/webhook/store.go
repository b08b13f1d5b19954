package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// certificates are what a server serves, and what its clients are to trust.
type certificates struct {
	served *served
	// bundle is PEM.
	bundle []byte
	// next is when to look again.
	next time.Time
}

// source provides certificates.
type source interface {
	// look returns what to serve and trust now. published says that all
	// clients know the bundle that look returned last.
	look(ctx context.Context, now time.Time, published bool) (certificates, error)
	// find returns what there is to serve and trust, and makes nothing; without certificates
	// that can be used, nothing of both.
	find(ctx context.Context, now time.Time) (certificates, error)
}

// errConflict says that somebody else has changed the Secret.
var errConflict = errors.New("the Secret has changed meanwhile")

// certStore reads and writes the Secret of the certificates.
type certStore interface {
	// get returns the data and a version for put; no data and "" when there is no Secret.
	get(ctx context.Context) (data map[string][]byte, version string, err error)
	// put writes the data over that version, or makes the Secret; else it is errConflict.
	put(ctx context.Context, data map[string][]byte, version string) error
}

// ownCertificates makes its certificates itself and keeps them in a Secret: other processes find the same ones there.
type ownCertificates struct {
	store certStore
	// who is part of the authority's name.
	who string
	// names are those under which the server is reached: host names and addresses.
	names []string
	log   zerolog.Logger
	// last is what the Secret held: it is put back when somebody deletes it.
	last map[string][]byte
}

// maxTries bounds how often one look begins again because others write, too.
const maxTries = 10

func (o *ownCertificates) look(ctx context.Context, now time.Time, published bool) (certificates, error) {
	for range maxTries {
		data, version, err := o.store.get(ctx)
		if err != nil {
			return certificates{}, err
		}
		lost := version == "" && o.last != nil
		if lost {
			data = o.last
		}
		m := parseMaterial(data)
		p := m.plan(now, o.names, published)
		if p.idle() && !lost {
			o.last = data
			return certificates{served: &served{m.leaf}, bundle: m.bundle(), next: p.next}, nil
		}
		next, err := m.apply(p, now, o.who, o.names)
		if err != nil {
			return certificates{}, fmt.Errorf("certificates of webhooks: %w", err)
		}
		if data, err = next.data(); err != nil {
			return certificates{}, err
		}
		switch err := o.store.put(ctx, data, version); {
		case errors.Is(err, errConflict):
			continue // somebody else was first: theirs counts
		case err != nil:
			return certificates{}, err
		}
		if !p.idle() {
			o.log.Info().Msg("webhooks: " + p.String())
		}
		published = false
	}
	return certificates{}, errors.New("certificates of webhooks: the Secret changes all the time")
}

func (o *ownCertificates) find(ctx context.Context, now time.Time) (certificates, error) {
	data, _, err := o.store.get(ctx)
	if err != nil {
		return certificates{}, err
	}
	m := parseMaterial(data)
	if m.leafTrouble(now, o.names) != "" {
		return certificates{}, nil
	}
	o.last = data
	// Those that follow them are made elsewhere, once these fall due.
	next := m.plan(now, o.names, false).next
	return certificates{served: &served{m.leaf}, bundle: m.bundle(), next: now.Add(max(next.Sub(now), lookForCertificates))}, nil
}

// secretStore is a Secret of the operator's namespace.
type secretStore struct {
	client   *cluster.Client
	ref      effect.Ref
	instance string
}

func newSecretStore(c *cluster.Client, namespace, name, instance string) *secretStore {
	return &secretStore{client: c, instance: instance, ref: effect.Ref{
		APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name + "-webhooks",
	}}
}

func (v *secretStore) get(ctx context.Context) (map[string][]byte, string, error) {
	obj, err := v.client.Get(ctx, v.ref)
	if obj == nil || err != nil {
		return nil, "", err
	}
	out := map[string][]byte{}
	data, _ := obj["data"].(map[string]any)
	for key, value := range data {
		text, _ := value.(string)
		// A value that is no base64 is as if it were not there.
		out[key], _ = base64.StdEncoding.DecodeString(text)
	}
	version := effect.At[string](obj, "metadata", "resourceVersion")
	return out, version, nil
}

func (v *secretStore) put(ctx context.Context, data map[string][]byte, version string) error {
	content := make(map[string]any, len(data))
	for key, value := range data {
		content[key] = base64.StdEncoding.EncodeToString(value)
	}
	w := effect.Write{Kind: effect.WriteCreate, Ref: v.ref, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{
			"name": v.ref.Name, "namespace": v.ref.Namespace,
			"labels": map[string]any{effect.InstanceLabel: v.instance},
		},
		"data": content,
	}}
	if version != "" {
		delete(w.Object, "type") // it cannot change
		w.Kind, w.Force, w.Unchanged = effect.WriteApply, true, &effect.Unchanged{ResourceVersion: version}
	}
	_, err := v.client.Write(ctx, "", w)
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return errConflict
	}
	return err
}
