package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/effect"
)

// SecretKey is a key of an instance that is kept in data.key of the Secret "<name>-<use>" of the operator's namespace.
type SecretKey struct {
	Client *Client
	// Namespace and Name are the instance, Instance the value of its label.
	Namespace, Name, Instance string
	// Use is what the key is for. It is in a label, by which the Secret is found, too.
	Use string
}

func (k SecretKey) Ref() effect.Ref {
	return effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: k.Namespace, Name: k.Name + "-" + k.Use}
}

// Read returns the key and what is noted with it; the key is nil when there is no Secret, and empty when the Secret holds
// none. It lists, which the operator has to be allowed anyway.
func (k SecretKey) Read(ctx context.Context) (key []byte, notes map[string]any, err error) {
	selector := effect.InstanceLabel + "=" + k.Instance + ",starling.dev/" + k.Use
	_, err = k.Client.Each(ctx, secrets, k.Namespace, metav1.ListOptions{LabelSelector: selector}, func(obj map[string]any) error {
		meta, _ := obj["metadata"].(map[string]any)
		if meta["name"] != k.Ref().Name {
			return nil
		}
		text := effect.At[string](obj, "data", "key")
		key, _ = base64.StdEncoding.DecodeString(text)
		key = append([]byte{}, key...)
		notes, _ = meta["annotations"].(map[string]any)
		return nil
	})
	return key, notes, k.Client.Explain(err, "list", secrets, k.Namespace)
}

// Create keeps a key, unless there is one: that stays, for it may be in use.
func (k SecretKey) Create(ctx context.Context, key []byte, notes map[string]any) error {
	meta := map[string]any{
		"name": k.Ref().Name, "namespace": k.Namespace,
		"labels": map[string]any{effect.InstanceLabel: k.Instance, "starling.dev/" + k.Use: "key"},
	}
	if len(notes) > 0 {
		meta["annotations"] = notes
	}
	_, err := k.Client.Write(ctx, "", effect.Write{Kind: effect.WriteCreate, Ref: k.Ref(), IfAbsent: true, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "starling.dev/" + k.Use, "metadata": meta,
		"data": map[string]any{"key": base64.StdEncoding.EncodeToString(key)},
	}})
	return err
}

const (
	// sealUse is [SecretKey].Use of the key that signs marks, and sealSize how long that is.
	sealUse  = "marks"
	sealSize = 32
	// unsignedNote says in its Secret until when marks count without a signature: those of what is there get one.
	unsignedNote = "starling.dev/unsigned-until"
	unsignedFor  = 24 * time.Hour
)

// ErrBadKey says that the Secret of the key holds none. It is told where the process that leads begins.
var ErrBadKey = errors.New("delete it, and a new one is made, with which children are signed anew")

// OpenSeal gives the seal of the client its key. With lead it makes the key, where there is none, and a warning tells
// when marks of an earlier time count: only the holder of the Lease may do so. Without lead nothing is said of a
// key that is not there.
func (k SecretKey) OpenSeal(ctx context.Context, now time.Time, lead bool) (warning string, err error) {
	k.Use = sealUse
	key, notes, err := k.Read(ctx)
	switch {
	case err != nil:
		return "", err
	case key == nil && !lead:
		k.Client.seal.None()
		return "", nil
	case key == nil:
		if warning, err = k.makeSeal(ctx, now); err == nil {
			key, notes, err = k.Read(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	if len(key) != sealSize {
		return "", fmt.Errorf("%s holds no key of %d bytes in data.key: %w", k.Ref(), sealSize, ErrBadKey)
	}
	text, _ := notes[unsignedNote].(string)
	until, err := time.Parse(time.RFC3339, text)
	if err != nil && text != "" {
		return "", fmt.Errorf("%s says no time in its annotation %s, but %q: %w", k.Ref(), unsignedNote, text, ErrBadKey)
	}
	k.Client.seal.Use(key, until)
	return warning, nil
}

func (k SecretKey) makeSeal(ctx context.Context, now time.Time) (warning string, err error) {
	key := make([]byte, sealSize)
	rand.Read(key)
	lease, err := k.Client.Get(ctx, effect.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: k.Namespace, Name: k.Name})
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, ErrNotServed) {
		return "", err
	}
	notes := map[string]any{}
	if ledBefore(lease) {
		until := now.Add(unsignedFor).UTC().Format(time.RFC3339)
		notes[unsignedNote] = until
		warning = fmt.Sprintf("%s was not there, and is made: until %s what carries marks of an earlier version, or of an earlier key, counts as made by this instance, and is signed", k.Ref(), until)
	}
	return warning, k.Create(ctx, key, notes)
}

// ledBefore says whether a process of the instance has had the Lease before the one that holds it now.
func ledBefore(lease map[string]any) bool {
	changes := effect.At[int64](lease, "spec", "leaseTransitions")
	had, err := time.Parse(time.RFC3339, effect.At[string](lease, "spec", "acquireTime"))
	at, failed := time.Parse(time.RFC3339, effect.At[string](lease, "metadata", "creationTimestamp"))
	return lease != nil && (changes > 0 || err != nil || failed != nil || had.Sub(at).Abs() > time.Minute)
}
