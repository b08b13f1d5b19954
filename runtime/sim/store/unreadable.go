package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lost is the error of an [Origin] that can no longer be read at all: whatever a store
// over it shows from then on is not to be believed, see [Store.Lost].
type Lost struct{ Err error }

// Error says why.
func (l *Lost) Error() string { return "the cluster can no longer be read: " + l.Err.Error() }

// Unwrap gives the cause.
func (l *Lost) Unwrap() error { return l.Err }

// Unavailable is the error of [Origin.Kinds] that goes along with the kinds that it
// could find: these group-versions are served, and cannot say now what is in them.
type Unavailable map[schema.GroupVersion]error

// Error names them.
func (u Unavailable) Error() string {
	names := make([]string, 0, len(u))
	for gv := range maps.Keys(u) {
		names = append(names, gv.String())
	}
	slices.Sort(names)
	return "the API server cannot say now which kinds it serves in " + strings.Join(names, ", ")
}

// of is the answer to who asks for what is in a group-version; nil: nothing is known
// against it.
func (u Unavailable) of(gv schema.GroupVersion) error {
	err, is := u[gv]
	if !is {
		return nil
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the API server cannot say now which kinds it serves in %s: %v", gv, err))
}

// Unavailable is the error of a group-version that the origin serves and cannot show
// now; nil for all others.
func (s *Store) Unavailable(gv schema.GroupVersion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		return nil
	}
	return s.over.unavailable.of(gv)
}

// Lost is the error of an origin that can no longer be read; nil while it can.
func (s *Store) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil || s.over.lost == nil {
		return nil // no *Lost in an error that is not nil
	}
	return s.over.lost
}

// ask asks the origin unless it has failed to answer this before: once it is lost there
// is no answer any more, and what it refuses it refuses for good.
func (o *over) ask(what string, fn func() error) error {
	if o.lost != nil {
		return o.lost
	}
	if err := o.refused[what]; err != nil {
		return err
	}
	err := fn()
	if err == nil {
		return nil
	}
	if errors.As(err, &o.lost) {
		return o.lost
	}
	o.refused[what] = err
	return err
}
