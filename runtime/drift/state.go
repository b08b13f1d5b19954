package drift

import (
	"errors"
	"strings"
	"unique"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/watch"
)

// Helm's annotations say which release an object belongs to.
const (
	annotationName      = "meta.helm.sh/release-name"
	annotationNamespace = "meta.helm.sh/release-namespace"
)

// name is where a release is.
type name struct{ namespace, name string }

// state is what a watch keeps of one object. It is a Starlark value because watches keep nothing
// else; no script sees it, so it answers as None does. Texts that many objects have are there once.
type state struct {
	version uint64              // resourceVersion; 0 when it is no number
	release unique.Handle[name] // that the object says it belongs to
	by      unique.Handle[string]
	owned   owned.Digest
	known   bool // there is an entry of Starling's, of which owned is the digest
	// deleting: the object goes once its finalizers are gone. finished: it is a Job that has ended.
	deleting, finished bool
	starlark.NoneType
}

// managers are the others that manage fields, newest first.
func (s *state) managers() []string {
	return strings.FieldsFunc(s.by.Value(), func(r rune) bool { return r == '\n' })
}

// mostBytes is what one object may take, its row in the watch included.
const mostBytes = 650

// Size counts what the tracker keeps, too: whoever may label objects could make very many. See [watch.Sized].
func (s *state) Size() int64 { return mostBytes }

// CompareSameType compares all of it: an object that is as it was makes no event.
func (s *state) CompareSameType(op syntax.Token, y starlark.Value, _ int) (bool, error) {
	if op != syntax.EQL && op != syntax.NEQ {
		return false, errors.New("states have no order")
	}
	other, is := y.(*state)
	return (is && *s == *other) == (op == syntax.EQL), nil
}

// read makes the state of an object, whose metadata alone need be there. A field that is not there, or of another type,
// counts as empty. Of a Job it sees whether that has finished. It is nil for an object that is ignored.
func read(obj map[string]any, job bool, manager string, ignore func(in name, object string) (paths []owned.Path, all bool)) *state {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	s := &state{
		version:  watch.Version(text(meta["resourceVersion"])),
		release:  unique.Make(name{text(annotations[annotationNamespace]), text(annotations[annotationName])}),
		deleting: text(meta["deletionTimestamp"]) != "",
	}
	paths, all := ignore(s.release.Value(), text(meta["name"]))
	if all {
		return nil
	}
	fields := (&unstructured.Unstructured{Object: obj}).GetManagedFields()
	s.finished = job && owned.Finished(fields)
	s.owned, s.known = owned.Of(fields, manager, paths)
	s.by = unique.Make(strings.Join(owned.Takers(fields, manager), "\n"))
	return s
}

func text(v any) string { s, _ := v.(string); return s }
