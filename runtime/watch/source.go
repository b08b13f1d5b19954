package watch

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kjson "sigs.k8s.io/json"
)

// watchBuffer is how many events may be decoded ahead of the filters.
const watchBuffer = 64

// source lists and watches for the reflector of a stream.
type source struct{ stream *stream }

// List implements cache.ListerWatcher; the reflector calls ListWithContext.
func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(s.stream.ctx, o)
}

// Watch implements cache.ListerWatcher; the reflector calls WatchWithContext.
func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(s.stream.ctx, o)
}

// ListWithContext reads the whole list and returns what the filters keep of it.
// It pages by itself and always asks for the newest state: a list from the past
// would show objects as they no longer are.
func (s *source) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	st := s.stream
	st.cover()
	out := &listedList{}
	version, err := st.m.o.Client.Each(ctx, st.mapping, st.key.namespace, st.options(metav1.ListOptions{}), func(obj map[string]any) error {
		out.Items = append(out.Items, st.filtered(obj))
		return nil
	})
	if err != nil {
		st.broken(err, "list")
		return nil, err
	}
	out.ResourceVersion = version
	return out, nil
}

// opaque hides a connection error from the reflector, which would wait for it
// without looking whether it is stopped; as it is, it falls back to a list, and
// that one's failure is waited for properly.
type opaque struct{ err error }

func (o opaque) Error() string { return o.err.Error() }

// WatchWithContext opens a watch, with the objects that exist first if asked to.
func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	st := s.stream
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	ctx, cancel := context.WithCancel(ctx)
	// The timer also covers a server that accepts the request and never answers.
	idle := time.AfterFunc(st.m.o.Idle, cancel)
	body, err := st.m.o.Client.Watch(ctx, st.mapping, st.key.namespace, st.options(o))
	if err != nil {
		idle.Stop()
		cancel()
		if initial {
			return nil, opaque{err}
		}
		st.broken(err, "watch")
		return nil, err
	}
	if initial {
		st.cover()
	}
	st.report(nil)
	w := &watcher{cancel: cancel, events: make(chan watch.Event, watchBuffer)}
	st.m.wg.Go(func() {
		defer close(w.events)
		defer idle.Stop()
		defer cancel()
		defer body.Close()
		d := kjson.NewDecoderCaseSensitivePreserveInts(body)
		for {
			var frame struct {
				Type   string         `json:"type"`
				Object map[string]any `json:"object"`
			}
			// Whatever ends the stream, the reflector opens the next one where
			// this one ended.
			if d.Decode(&frame) != nil || frame.Object == nil {
				return
			}
			idle.Reset(st.m.o.Idle)
			event := watch.Event{Type: watch.EventType(frame.Type)}
			if event.Type == watch.Error {
				event.Object = statusOf(frame.Object)
			} else {
				event.Object = &unstructured.Unstructured{Object: frame.Object}
			}
			select {
			case w.events <- event:
			case <-ctx.Done():
				return
			}
		}
	})
	return w, nil
}

// statusOf reads the object of an error event.
func statusOf(obj map[string]any) *metav1.Status {
	var status metav1.Status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &status); err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Message: "the watch ended with an error that cannot be read"}
	}
	return &status
}

// watcher is one open watch.
type watcher struct {
	cancel context.CancelFunc
	once   sync.Once
	events chan watch.Event
}

// Stop ends the watch; its channel is closed soon after.
func (w *watcher) Stop() { w.once.Do(w.cancel) }

// ResultChan delivers the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }
