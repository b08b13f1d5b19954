package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// shardRoom is how much a shard holds before new records go to the next one: a change of
	// one record has the API server store all of its shard anew.
	shardRoom = 128 << 10
	// shardMost is how large the records of a shard may grow; the API server takes 1 MiB.
	shardMost = 900 << 10
	// shardsPage is how many of the Secrets one request asks for.
	shardsPage = 20
	// shardLabel is on the Secrets. Its value is the instance's.
	shardLabel = "starling.dev/releases"
)

// shard is one object with records: the ConfigMap, which versions without Secrets know, or one of
// the Secrets, for which Starling needs no other right. A record stays in the shard where it is.
type shard struct {
	name   string
	secret bool
	data   map[string]string
	size   int
	// differ is what is still to be written, nil to remove.
	differ map[string]*string
}

func (s shard) kind() string {
	if s.secret {
		return "Secret"
	}
	return "ConfigMap"
}

// valueOf is the record of a key.
func valueOf(shards []shard, key string) (string, bool) {
	for _, s := range shards {
		if text, ok := s.data[key]; ok {
			return text, true
		}
	}
	return "", false
}

func newShard(name string, secret bool, data map[string]string) shard {
	s := shard{name: name, secret: secret, data: data}
	for key, value := range data {
		s.size += len(key) + len(value)
	}
	return s
}

// load reads all shards; one that is not there is empty. The ConfigMap comes first.
func (r *records) load(ctx context.Context) ([]shard, error) {
	cm, err := r.core.ConfigMaps(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the records of releases (ConfigMap %s): %w", r.name, err)
	}
	if err != nil {
		cm = &corev1.ConfigMap{}
	}
	out := []shard{newShard(r.name, false, cm.Data)}
	o := metav1.ListOptions{LabelSelector: labels.Set{shardLabel: r.instance}.String(), Limit: shardsPage}
	for {
		list, err := r.core.Secrets(r.namespace).List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("reading the records of releases (Secrets %s-…): %w", r.name, err)
		}
		for _, s := range list.Items {
			data := make(map[string]string, len(s.Data))
			for key, value := range s.Data {
				data[key] = string(value)
			}
			out = append(out, newShard(s.Name, true, data))
		}
		if o.Continue = list.Continue; o.Continue == "" {
			break
		}
	}
	slices.SortFunc(out[1:], func(a, b shard) int { return r.number(a) - r.number(b) })
	return out, nil
}

// number is that of a Secret, from 1.
func (r *records) number(s shard) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(s.name, r.name+"-")) // a copy by hand is read, too
	return n
}

// place says which shards hold what after the changes, and which keys have no place.
func (r *records) place(known []shard, changes map[string]*string) (after []shard, refused map[string]error) {
	after, refused = slices.Clone(known), map[string]error{}
	change := func(i int, key string, value *string) {
		s := &after[i]
		if s.differ == nil {
			s.differ, s.data = map[string]*string{}, maps.Clone(s.data)
		}
		if s.data == nil {
			s.data = map[string]string{}
		}
		if have, ok := s.data[key]; ok {
			s.size -= len(key) + len(have)
			delete(s.data, key)
		}
		if s.differ[key] = value; value != nil {
			s.data[key] = *value
			s.size += len(key) + len(*value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value, home, there := changes[key], -1, false
		for i, s := range after {
			have, ok := s.data[key]
			if ok && (value == nil || home < 0) { // a copy counts for nothing, and goes with it
				there = value != nil && have == *value
				if home = i; value == nil {
					change(i, key, nil)
				}
			}
		}
		if value == nil || there {
			continue
		}
		size := len(key) + len(*value)
		if home < 0 {
			home = slices.IndexFunc(after, func(s shard) bool { return s.size == 0 || s.size+size <= shardRoom })
		}
		if home < 0 {
			home = len(after)
			after = append(after, shard{name: fmt.Sprintf("%s-%d", r.name, r.number(after[home-1])+1), secret: true})
		}
		if now := after[home]; now.size-len(now.data[key])+len(*value) > shardMost {
			refused[key] = fmt.Errorf("recording a release: its record has %d KiB, for which %s %s has no room: delete the objects by hand that it could not delete",
				size>>10, now.kind(), now.name)
			continue
		}
		change(home, key, value)
	}
	return after, refused
}

// writeShard writes what differs. A merge patch names only the keys that change, so it never meets a conflict on the
// others. A shard that has gone while we ran is written anew, with all that is known of it.
func (r *records) writeShard(ctx context.Context, s shard) (err error) {
	var patch []byte
	data := map[string][]byte{} // of a Secret
	meta := metav1.ObjectMeta{Name: s.name, Labels: map[string]string{effect.InstanceLabel: r.instance}}
	if s.secret {
		meta.Labels[shardLabel] = r.instance
		for key, value := range s.data {
			data[key] = []byte(value)
		}
		differ := map[string]*[]byte{}
		for key, value := range s.differ {
			if differ[key] = nil; value != nil {
				text := data[key]
				differ[key] = &text
			}
		}
		patch, err = json.Marshal(map[string]any{"data": differ})
	} else {
		patch, err = json.Marshal(map[string]any{"data": s.differ})
	}
	if err != nil {
		return err
	}
	for range recordTries {
		if s.secret {
			_, err = r.core.Secrets(r.namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				_, err = r.core.Secrets(r.namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta, Type: shardLabel, Data: data}, metav1.CreateOptions{})
			}
		} else {
			_, err = r.core.ConfigMaps(r.namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				_, err = r.core.ConfigMaps(r.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: s.data}, metav1.CreateOptions{})
			}
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return err
}
