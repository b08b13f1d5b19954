package store

import (
	"encoding/json"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// typedKind passes objects of a built-in kind through their Go type, as the real
// server does: that drops unknown fields, checks types, writes quantities in their
// usual form and shows the same empty fields.
type typedKind struct {
	gvk    schema.GroupVersionKind
	scheme *runtime.Scheme

	once  sync.Once
	blank map[string]any
}

// empty is an object of which nothing is set. Do not change it.
func (t *typedKind) empty() map[string]any {
	t.once.Do(func() {
		obj, err := t.scheme.New(t.gvk)
		if err != nil {
			panic(err) // the table names a kind that the scheme does not have
		}
		if t.blank, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			panic(err)
		}
		t.blank["apiVersion"], t.blank["kind"] = t.gvk.GroupVersion().String(), t.gvk.Kind
	})
	return t.blank
}

// decode returns obj as its Go type writes it, with defaults, and which fields are
// not known. The error is one of JSON decoding.
func (t *typedKind) decode(obj map[string]any) (out map[string]any, unknown []string, err error) {
	into, err := t.scheme.New(t.gvk)
	if err != nil {
		return nil, nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, into, true); err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, nil, t.decodeError(obj, err)
		}
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
	}
	setDefaults(into)
	out, err = runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, nil, err
	}
	out["apiVersion"], out["kind"] = t.gvk.GroupVersion().String(), t.gvk.Kind
	return out, unknown, nil
}

// decodeError says what JSON decoding says, which names the field.
func (t *typedKind) decodeError(obj map[string]any, err error) error {
	into, newErr := t.scheme.New(t.gvk)
	text, marshalErr := json.Marshal(obj)
	if newErr != nil || marshalErr != nil {
		return err
	}
	if jsonErr := kjson.UnmarshalCaseSensitivePreserveInts(text, into); jsonErr != nil {
		return jsonErr
	}
	return err
}

// cannotHandle is the answer to a body that is no object of the kind.
func cannotHandle(k *kind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.Kind.Kind, k.Version, k.Kind.Kind, err))
}
