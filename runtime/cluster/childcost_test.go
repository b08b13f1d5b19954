package cluster

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// childOf is a ConfigMap that is a child of the parent with a uid.
func childOf(uid, name, value string) map[string]any {
	return reconcile.Mark(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": name}, "data": map[string]any{"n": value},
	}, &reconcile.Part{ID: reconcile.ID{Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: name}}, Digest: value}, 0,
		reconcile.Parent{Key: "a/p", UID: uid, Controller: "c"})
}

// A child is made with one request, when nothing is there; what is there is read before anybody says
// whose it is, and stays as it is.
func TestAChildIsMadeWithOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		make := func(objects ...map[string]any) ([]string, error) {
			return w.write("starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: appliesOf(objects)})
		}
		got, err := make(childOf("u1", "x", "1"), childOf("u1", "y", "1"))
		slices.Sort(got)
		if diff := cmp.Diff([]string{"PATCH x", "PATCH y"}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		x := configRef
		before := w.get(x)

		// Somebody else's, also where only the parent is another one.
		got, err = make(childOf("u2", "x", "2"))
		if err == nil || !strings.Contains(err.Error(), "this controller did not make it for this parent") {
			t.Errorf("the child of another parent: %v", err)
		}
		if diff := cmp.Diff([]string{"PATCH x", "GET x"}, got); diff != "" {
			t.Errorf("the child of another parent (-want +got):\n%s", diff)
		}
		// Our own that was not seen: the next run decides about it.
		got, err = make(childOf("u1", "x", "3"))
		if diff := cmp.Diff([]string{"PATCH x", "GET x"}, got); diff != "" || err != nil {
			t.Errorf("a child that was not seen: %v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(before, w.get(x)); diff != "" {
			t.Errorf("the object has changed (-before +after):\n%s", diff)
		}
	})
}

// refusing is an API server that takes no version with an object that it makes, as some aggregated ones do.
type refusing struct {
	*farAPI
	message string
}

func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return f.farAPI.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	get := r.Clone(r.Context())
	get.Method, get.Body, get.URL.RawQuery = http.MethodGet, nil, ""
	there, err := f.next.RoundTrip(get)
	if err != nil || there.StatusCode == http.StatusOK || !strings.Contains(string(body), `"resourceVersion":"1"`) {
		return f.farAPI.RoundTrip(r)
	}
	f.mu.Lock()
	f.requests = append(f.requests, "refused")
	f.mu.Unlock()
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "` + f.message + `"}`)),
	}, nil
}

// Such a server makes the child once it is known that none is there; what is there stays as it is.
func TestAChildOfAServerThatTakesNoVersion(t *testing.T) {
	for message, want := range map[string][]string{
		"resourceVersion should not be set on objects to be created":                                   {"refused", "GET y", "PATCH y"},
		"error with field Metadata.ResourceVersion = '1' (field must not be set for a Create request)": {"refused", "GET y", "PATCH y"},
		"out of order": {"refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newFarWorld(t)
			client, err := New(Options{Config: &rest.Config{Host: "http://sim", Transport: &refusing{w.api, message}}, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.write("somebody", effect.Write{Kind: effect.WriteApply, Ref: configRef, Object: configMap("a", "x")}); err != nil {
				t.Fatal(err)
			}
			w.writer = NewWriter(WriterOptions{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"})
			got, err := w.write("starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: appliesOf([]map[string]any{childOf("u1", "y", "1")})})
			if !slices.Equal(got, want) || (err == nil) != (len(want) > 1) {
				t.Errorf("%s: %v, %v", message, got, err)
			}
			if _, err = w.write("starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: appliesOf([]map[string]any{childOf("u1", "x", "1")})}); err == nil {
				t.Errorf("%s: the object of somebody else is taken", message)
			}
		})
	}
}

// A finalizer takes one request where a watch shows the object, and more where that is behind.
func TestAFinalizerGoesByWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		if _, err := w.write("somebody", effect.Write{Kind: effect.WriteApply, Ref: configRef, Object: configMap("a", "x")}); err != nil {
			t.Fatal(err)
		}
		var known map[string]any
		w.writer.o.Known = func(ref effect.Ref) map[string]any { return known }
		do := func(what string, kind effect.WriteKind, want []string, finalizers ...any) {
			t.Helper()
			got, err := w.write("starling/web/c", effect.Write{Kind: kind, Ref: configRef, Finalizer: "starling.dev/c"})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
			}
			meta := w.get(configRef)["metadata"].(map[string]any)
			if now, _ := meta["finalizers"].([]any); !cmp.Equal(now, finalizers) && len(now)+len(finalizers) > 0 {
				t.Errorf("%s: finalizers are %v, want %v", what, now, finalizers)
			}
		}
		old := w.get(configRef)
		known = old
		do("added", effect.WriteAddFinalizer, []string{"PATCH x"}, "starling.dev/c")
		known = w.get(configRef)
		do("is there", effect.WriteAddFinalizer, []string{"GET x"}, "starling.dev/c")
		do("taken off", effect.WriteRemoveFinalizer, []string{"PATCH x"})
		known = nil
		do("not known", effect.WriteAddFinalizer, []string{"GET x", "PATCH x"}, "starling.dev/c")
		do("not known, taken off", effect.WriteRemoveFinalizer, []string{"GET x", "PATCH x"})

		// Somebody has added another one since: it stays.
		theirs := configMap("a", "x")
		theirs["metadata"].(map[string]any)["finalizers"] = []any{"example.com/theirs"}
		if _, err := w.write("somebody", effect.Write{Kind: effect.WriteApply, Ref: configRef, Object: theirs}); err != nil {
			t.Fatal(err)
		}
		known = old
		do("behind", effect.WriteAddFinalizer, []string{"PATCH x", "GET x", "PATCH x"}, "example.com/theirs", "starling.dev/c")

		// The object has gone.
		var gone []time.Time
		w.writer.o.Observe = func(_ effect.Ref, obj map[string]any, _ *effect.Cause, at time.Time) { gone = append(gone, at) }
		ref := configRef
		ref.Name = "never"
		known = configMap("a", "never")
		known["metadata"].(map[string]any)["resourceVersion"], known["metadata"].(map[string]any)["uid"] = "7", "u"
		_, err := w.write("starling/web/c", effect.Write{Kind: effect.WriteAddFinalizer, Ref: ref, Finalizer: "starling.dev/c"})
		if err == nil || !strings.Contains(err.Error(), "is gone; there is nothing to clean up") || len(gone) > 0 {
			t.Errorf("gone: %v, %v", err, gone)
		}
	})
}

// An object of somebody else that is taken over is never deleted: not when the API server refuses the
// change, and the part says that a child is made anew then.
func TestWhatIsTakenOverIsNotMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		theirs := configMap("a", "x")
		theirs["data"], theirs["immutable"] = map[string]any{"n": "0"}, true
		if _, err := w.write("somebody", effect.Write{Kind: effect.WriteApply, Ref: configRef, Object: theirs}); err != nil {
			t.Fatal(err)
		}
		before := w.get(configRef)
		children := appliesOf([]map[string]any{childOf("u1", "x", "1")})
		children[0].Adopt, children[0].Recreate = true, true
		got, err := w.write("starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: children})
		if err == nil || !strings.Contains(err.Error(), "immutable") || slices.Contains(got, "DELETE x") {
			t.Errorf("%v, %v", got, err)
		}
		if diff := cmp.Diff(before, w.get(configRef)); diff != "" {
			t.Errorf("the object has changed (-before +after):\n%s", diff)
		}
	})
}

// An object that a hook of another module applies is not taken over; one of the same module is.
func TestWhatAnotherModuleAppliesIsNotTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFarWorld(t)
		for module, want := range map[string]string{"db": "it is there, and is not taken over, as a hook of module db has made it", "web": ""} {
			theirs := configMap("a", module)
			if _, err := w.write("starling/"+module+"/hooks/a.star:f", effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(theirs), Object: theirs}); err != nil {
				t.Fatal(err)
			}
			children := appliesOf([]map[string]any{childOf("u1", module, "1")})
			children[0].Adopt, children[0].Force = true, true
			if _, err := w.write("starling/web/c", effect.Write{Kind: effect.WriteChildren, Children: children}); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", module, err)
			}
		}
	})
}
