package store

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Merged is an object, and the same with the fields of another one put over it.
type Merged struct {
	// Live is the object as it is stored; nil: it is not there, and neither are the
	// others. Do not change it.
	Live map[string]any
	// Before is Live, After is Live with the fields put over it: both in the form of their
	// kind, without fields that it does not know, and with defaults.
	Before, After map[string]any
	// Known says that the store knows the fields of the kind.
	Known bool
}

// Merge puts the fields of obj over the object of its name, by the rules of server-side
// apply, and changes nothing: it is no write, so nobody checks the outcome.
func (s *Store) Merge(t Target, obj map[string]any) (Merged, error) {
	s.mu.Lock()
	defer s.unlock()
	t.Spared = true
	k, err := s.find(t, "get")
	if err != nil {
		return Merged{}, err
	}
	live, err := s.view(k, s.stored(k, t))
	if err != nil || live == nil {
		return Merged{}, err
	}
	w := &write{store: s, kind: k, target: t, options: WriteOptions{FieldValidation: "Ignore"}}
	asked, err := copied(obj)
	if err != nil {
		return Merged{}, err
	}
	if err := checkNames(k, t, asked); err != nil {
		return Merged{}, err
	}
	plain := runtime.DeepCopyJSON(live)
	setMeta(plain, "managedFields", nil) // who owns what is of no interest here
	if k.typed != nil {                  // by client-side rules such fields are dropped, and an apply refuses them
		if _, unknown, err := w.decode(runtime.DeepCopyJSON(asked)); err == nil {
			leaveOut(asked, unknown)
		}
	}
	after, err := s.apply(k, "", "merge", true, plain, asked)
	if err != nil {
		return Merged{}, messageOf(err)
	}
	out := Merged{Live: live, Known: k.typed != nil || k.crd != nil}
	if out.Before, _, err = w.decode(plain); err != nil {
		return Merged{}, messageOf(err)
	}
	if out.After, _, err = w.decode(runtime.DeepCopyJSON(after)); err != nil {
		return Merged{}, messageOf(err)
	}
	return out, nil
}

// messageOf keeps the message of an error only.
func messageOf(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Message != "" {
		return errors.New(status.Status().Message)
	}
	return err
}
