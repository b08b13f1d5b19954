package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrOtherWriter is in the error of a save that found what another process has written:
// there is a second writer, or a person has changed or deleted the Secret. This process
// must not go on as if it were alone.
var ErrOtherWriter = errors.New("another process has written it")

// put writes one Secret with the given keys, or deletes it when there are none. It
// holds only for the Secret as it was at the API server's last answer.
func (k *Kept) put(ctx context.Context, module string, m *keptModule, ch change, data map[string][]byte) error {
	p := m.parts[ch.part]
	if p == nil {
		p = &part{}
		m.parts[ch.part] = p
	}
	next := content{revision: m.revision, sums: ch.sums}
	for try := 1; ; try++ {
		p.tried = &next
		obj, err := k.o.Client.Write(ctx, "", k.write(module, ch, p, data))
		switch {
		case err == nil && len(ch.sums) == 0:
			delete(m.parts, ch.part)
			return nil
		case err == nil:
			p.seen(obj)
			p.content, p.tried = next, nil
			return nil
		case try == maxTries && apierrors.IsAlreadyExists(err):
			return fmt.Errorf("the Secret %s/%s is in the way, and was not made by Starling: delete it", k.o.Namespace, k.partName(module, ch.part))
		case try == maxTries, !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return err // whether it was carried out shows before the next save
		}
		// The Secret is not as we left it. A request that the client has repeated, or
		// a label that a person has set, is no harm.
		if err := k.settle(ctx, module, m); err != nil {
			return err
		}
		p = m.parts[ch.part]
		switch {
		case p == nil && len(ch.sums) == 0, p != nil && p.content.equal(next):
			return nil // it was carried out
		case p == nil:
			p = &part{}
			m.parts[ch.part] = p
		}
	}
}

// write is the write of one Secret: it is made, changed or deleted, but never taken
// over.
func (k *Kept) write(module string, ch change, p *part, data map[string][]byte) effect.Write {
	w := effect.Write{
		Ref:       effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: k.o.Namespace, Name: k.partName(module, ch.part)},
		Unchanged: &effect.Unchanged{UID: p.uid, ResourceVersion: p.version},
	}
	if len(ch.sums) == 0 {
		w.Kind = effect.WriteDelete
		return w
	}
	values := make(map[string]any, len(ch.sums))
	for key := range p.sums {
		values[encodeKey(key)] = nil // goes, unless it is set below
	}
	for key, next := range ch.sums {
		if sum, stored := p.sums[key]; stored && p.uid != "" && sum == next {
			delete(values, encodeKey(key)) // stays as it is
		} else {
			values[encodeKey(key)] = base64.StdEncoding.EncodeToString(data[key])
		}
	}
	metadata := map[string]any{"annotations": map[string]any{revisionAnnotation: strconv.FormatInt(p.tried.revision, 10)}}
	if p.uid != "" {
		w.Kind = effect.WritePatch
		w.Patch = &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{"metadata": metadata, "data": values}}
		return w
	}
	metadata["name"], metadata["namespace"] = w.Ref.Name, w.Ref.Namespace
	metadata["labels"] = map[string]any{effect.InstanceLabel: k.o.Instance, k.o.Label: module}
	w.Kind, w.Unchanged = effect.WriteCreate, nil
	w.Object = map[string]any{"apiVersion": "v1", "kind": "Secret", "type": k.o.Label, "metadata": metadata, "data": values}
	return w
}

// seen takes over the identity of a Secret from an answer of the API server.
func (p *part) seen(obj map[string]any) {
	p.uid, p.version = uidOf(obj), versionOf(obj)
}

// settle finds out what has become of writes that had no clear answer: each Secret
// holds what it held before or what was written, else there is another writer.
func (k *Kept) settle(ctx context.Context, module string, m *keptModule) error {
	clear := true
	for _, p := range m.parts {
		clear = clear && p.tried == nil
	}
	if clear {
		return nil
	}
	found, _, err := k.list(ctx, k.o.Label+"="+module)
	switch {
	case errors.As(err, new(*keptError)):
		return fmt.Errorf("%w: %w", ErrOtherWriter, err)
	case err != nil:
		return err
	}
	stored := found[module]
	if stored == nil {
		stored = &keptModule{}
	}
	for number, p := range m.parts {
		if p.tried == nil {
			continue
		}
		is := stored.parts[number]
		switch {
		case is == nil && (p.uid == "" || len(p.tried.sums) == 0):
			delete(m.parts, number)
		case is != nil && (is.equal(*p.tried) || p.uid == is.uid && is.equal(p.content)):
			m.parts[number] = is
		default:
			return fmt.Errorf("the Secret %s/%s is not as it was left: %w", k.o.Namespace, k.partName(module, number), ErrOtherWriter)
		}
	}
	return nil
}
