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
}

func (s shard) kind() string {
	if s.secret {
		return "Secret"
	}
	return "ConfigMap"
}

func (s shard) size() (n int) {
	for key, value := range s.data {
		n += len(key) + len(value)
	}
	return n
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

// load reads all shards; one that is not there is empty. The ConfigMap comes first.
func (r *records) load(ctx context.Context) ([]shard, error) {
	cm, err := r.core.ConfigMaps(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the records of releases (ConfigMap %s): %w", r.name, err)
	}
	if err != nil {
		cm = &corev1.ConfigMap{}
	}
	out := []shard{{r.name, false, cm.Data}}
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
			out = append(out, shard{s.Name, true, data})
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
	for i, s := range after {
		after[i].data = maps.Clone(s.data)
	}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		if value == nil {
			for _, s := range after { // a copy goes with it
				delete(s.data, key)
			}
			continue
		}
		size := len(key) + len(*value)
		home := slices.IndexFunc(after, func(s shard) bool { _, there := s.data[key]; return there })
		if home < 0 {
			home = slices.IndexFunc(after, func(s shard) bool { return len(s.data) == 0 || s.size()+size <= shardRoom })
		}
		if home < 0 {
			home = len(after)
			after = append(after, shard{name: fmt.Sprintf("%s-%d", r.name, r.number(after[home-1])+1), secret: true})
		}
		now := &after[home]
		if now.data[key] != *value && now.size()-len(now.data[key])+len(*value) > shardMost {
			refused[key] = fmt.Errorf("recording a release: its record has %d KiB, for which %s %s has no room: delete the objects by hand that it could not delete",
				size>>10, now.kind(), now.name)
			continue
		}
		if now.data == nil {
			now.data = map[string]string{}
		}
		now.data[key] = *value
	}
	return after, refused
}

// writeShard writes what differs from before. A merge patch names only the keys that change, so it never meets a
// conflict on the others. A shard that has gone while we ran is written anew, with all that is known of it.
func (r *records) writeShard(ctx context.Context, s shard, before map[string]string) error {
	differ, data := map[string]any{}, map[string][]byte{}
	for key := range before {
		if _, stays := s.data[key]; !stays {
			differ[key] = nil
		}
	}
	for key, value := range s.data {
		data[key] = []byte(value)
		switch was, had := before[key]; {
		case had && was == value:
		case s.secret:
			differ[key] = data[key]
		default:
			differ[key] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"data": differ})
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: s.name, Labels: map[string]string{effect.InstanceLabel: r.instance}}
	for range recordTries {
		if s.secret {
			meta.Labels[shardLabel] = r.instance
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
