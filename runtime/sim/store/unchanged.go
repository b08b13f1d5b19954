package store

import "k8s.io/apimachinery/pkg/types"

// unchanged is a patch that has left an object as it was. As long as the object stays as it is, the same patch does so
// again: a hook that is tried for an hour sends it hundreds of times, and to merge it costs more than all the rest of a
// try.
type unchanged struct {
	patch  patchKey
	result Result
}

// patchKey is all that the outcome of a patch depends on, beside the object.
type patchKey struct {
	kind        *kind
	subresource string
	typ         types.PatchType
	options     WriteOptions
	data        string
}

func (w *write) patchKey(typ types.PatchType, data []byte) patchKey {
	return patchKey{w.kind, w.target.Subresource, typ, w.options, string(data)}
}

// repeats returns the answer to a patch that has changed nothing before; false: it is another one.
func (w *write) repeats(key patchKey) (Result, bool) {
	of, is := w.table().unchanged[w.key()]
	return of.result, is && of.patch == key
}

// noteUnchanged notes a patch that has changed nothing. One whose outcome may depend on more than the object is not
// noted: over an origin, of a kind whose objects may be converted, and of an approval, which has a time.
func (w *write) noteUnchanged(key patchKey, res Result) {
	if key.subresource == approval || key.options.DryRun || w.store.over != nil || w.store.severalVersions(w.kind) {
		return
	}
	w.table().unchanged[w.key()] = unchanged{key, res}
}

func (w *write) table() *table { return w.store.table(w.kind.keptIn()) }
func (w *write) key() string   { return keyOf(w.target.Namespace, w.target.Name) }

// severalVersions says whether a kind is served in another version, too.
func (s *Store) severalVersions(k *kind) bool {
	for _, other := range s.kinds {
		if other != k && other.groupResource() == k.groupResource() {
			return true
		}
	}
	return k.keptAs != nil
}
