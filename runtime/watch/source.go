package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/starling-operator/starling/runtime/cluster"
	kjson "sigs.k8s.io/json"
)

const (
	// watchFor is the least time after which the API server ends a watch, which goes on where
	// it was. Twice as long is the most, so that not all end at once.
	watchFor = 5 * time.Minute
	// shortWatch is how long a watch lasts at least that was worth to open.
	shortWatch = time.Second
	// mostStart is the longest wait that the API server names for a storage that is about to begin.
	mostStart = 5 * time.Second
	// backoffReset is how long nothing must have failed before delays are short again.
	backoffReset = 2 * time.Minute
	// listQuiet is how long a list that comes through a watch may bring no object that it has not brought before, and
	// listMost is how long its objects may be waited for altogether. After that the list comes in pages.
	listQuiet, listMost = 10 * time.Second, time.Minute
)

// errPast says that a list shows what was before what is known.
var errPast = errors.New("the API server has answered with a list of the past")

// errEnded is the end of a watch that the API server, or the connection, has ended.
var errEnded = errors.New("the watch has ended")

// errEndless says that a list through a watch brings no more objects, and does not say that it is complete.
var errEndless = errors.New("the API server does not say where its list ends")

// unreadable is an event of a watch that nobody can decode.
type unreadable struct{ error }

// source lists and watches for a stream, in the way of client-go's reflector: the list comes
// through the watch where the API server can do that. It has one goroutine, where a reflector
// and its decoder have three: a thousand streams rest most of the time.
type source struct {
	*stream
	version  string    // up to which objects are known; "": nothing is
	failures int       // in a row
	failed   time.Time // when it did last
	renewal  uint64    // of the stream, as the last list was asked for
	doubted  bool      // the last list was of the past
	pages    bool      // the API server does not end lists through a watch: they come in pages
}

// run lists and watches until the stream is cancelled.
func (s *source) run() {
	for s.ctx.Err() == nil {
		err := s.round()
		if !s.outdated() {
			s.pause(err)
		}
	}
}

// pause waits between attempts, longer each time. A storage that begins is no failure: its wait is that which the API
// server names.
func (s *source) pause(err error) {
	wait, starts := storageStarts(err)
	if !starts {
		if time.Since(s.failed) > backoffReset {
			s.failures = 0
		}
		s.failures++
		wait = s.m.o.Backoff.Delay(s.failures, rand.Float64())
		defer func() { s.failed = time.Now() }()
	}
	ctx, cancel := context.WithTimeout(s.ctx, wait)
	defer cancel()
	s.cuts(cancel) // a renewal does not wait
	<-ctx.Done()
}

// round lists, and watches as long as each watch goes on where the one before has ended.
func (s *source) round() error {
	if s.outdated() {
		s.version = "" // else a list need not be newer
	}
	var w *frames
	err := errEndless
	if !s.pages {
		w, err = s.streamList()
	}
	if err != nil && err != errPast && s.ctx.Err() == nil {
		s.pages = s.pages || err == errEndless
		err = s.list()
	}
	for err == nil {
		if w == nil {
			w, err = s.open(false)
		}
		if err == nil {
			err = s.follow(w)
		}
		w = nil
		if s.outdated() {
			return nil
		}
		if retriable(err) {
			s.pause(err)
			err = s.ctx.Err()
		}
	}
	return err
}

// retriable says that the API server is there again soon, and knows the version still.
func retriable(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// storageStarts says that the API server has only just begun to store the kind, as it does in the first moment after a
// CustomResourceDefinition was made, and when to ask again. Waits get long of a storage that does not come: that is trouble.
func storageStarts(err error) (wait time.Duration, starts bool) {
	var api apierrors.APIStatus
	if !apierrors.IsTooManyRequests(err) || !errors.As(err, &api) || api.Status().Message != cluster.StorageStarts {
		return 0, false
	}
	seconds, named := apierrors.SuggestsClientDelay(err)
	wait = time.Duration(seconds) * time.Second
	return wait, named && wait <= mostStart
}

// unknownVersion says that the API server does not have what was asked for at a version.
func unknownVersion(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// streamList opens a watch that begins with the objects that there are, and takes them in.
func (s *source) streamList() (*frames, error) {
	for {
		s.asks()
		w, err := s.open(true)
		if err != nil {
			return nil, err // a list says what is wrong
		}
		items, version, err := s.collect(w)
		if err == nil && s.doubts(version) {
			w.close()
			return nil, errPast
		}
		if err == nil {
			s.version = version
			s.replace(items, version, s.renewal)
			return w, nil
		}
		w.close()
		switch {
		case s.ctx.Err() != nil:
			return nil, err
		case unknownVersion(err) && s.version != "":
			s.version = ""
		case retriable(err):
			s.pause(err)
		default:
			return nil, err
		}
	}
}

// collect reads what there is, up to the bookmark that ends it. Of each object it keeps what
// the filters keep. It fails with errEndless when the API server does not know of such lists, or does not end them:
// bookmarks and changes may come for ever.
func (s *source) collect(w *frames) (items []*listed, version string, err error) {
	found := map[objectKey]*listed{}
	var waited, quiet time.Duration // for the API server, not for filters
	stop := time.AfterFunc(listQuiet, w.cancel)
	defer stop.Stop()
	for said := false; ; said = true {
		asked := time.Now()
		stop.Reset(listQuiet - quiet)
		typ, obj, err := w.next()
		stop.Stop()
		took := time.Since(asked)
		waited, quiet = waited+took, quiet+took
		switch {
		case said && (quiet >= listQuiet || waited >= listMost):
			return nil, "", errEndless
		case err != nil:
			return nil, "", err
		}
		key, version, _ := identity(obj)
		switch typ {
		case watch.Added, watch.Modified:
			if found[key] == nil {
				quiet = 0
			}
			found[key] = s.filtered(obj, s.covered)
		case watch.Deleted:
			delete(found, key)
		case watch.Bookmark:
			if !endsList(obj) {
				continue
			}
			return slices.Collect(maps.Values(found)), version, nil
		}
	}
}

// endsList says whether a bookmark ends the objects that there were.
func endsList(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// list reads the whole list and takes in what the filters keep of it. It always asks for the
// newest state: a list from the past would show objects as they no longer are.
func (s *source) list() error {
	var items []*listed
	var version string
	var err error
	for range 2 {
		s.asks()
		s.cover()
		items = nil
		version, err = s.m.o.Client.Each(s.ctx, s.mapping, s.key.namespace, s.options(metav1.ListOptions{}), func(obj map[string]any) error {
			items = append(items, s.filtered(obj, s.covered))
			return nil
		})
		if !unknownVersion(err) {
			break // else it was a list in pages, and took too long
		}
	}
	if err != nil {
		s.broken(err, "list")
		return err
	}
	if s.doubts(version) {
		return errPast
	}
	s.version = version
	s.replace(items, version, s.renewal)
	return nil
}

// doubts says whether a list is of the past, and to ask once more: a server may lag behind, or a cache between. When
// the next one is, too, the server's history begins anew, as that of an etcd that was restored does.
func (s *source) doubts(resourceVersion string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = !s.doubted && isPast(resourceVersion, s.position)
	return s.doubted
}

// isPast says whether a version is before a position. One that is no number is not.
func isPast(resourceVersion string, position uint64) bool {
	version := Version(resourceVersion)
	return version != 0 && version < position
}

// follow takes in what a watch brings, until it ends. Nil says that the next one goes on
// where it was.
func (s *source) follow(w *frames) error {
	defer w.close()
	began, ordered, any := time.Now(), s.version != "" && s.version != "0", false
	for {
		typ, obj, err := w.next()
		switch {
		case err == errEnded && s.ctx.Err() == nil && (any || time.Since(began) >= shortWatch):
			return nil
		case err != nil:
			if bad := (unreadable{}); errors.As(err, &bad) {
				s.broken(err, "watch")
			}
			return err
		}
		any = true
		key, version, _ := identity(obj)
		switch typ {
		case watch.Added, watch.Modified:
			if s.outlived(key, typ == watch.Added) {
				s.bookmark(version)
			} else {
				s.change(key, Version(version), obj, false, nil)
			}
		case watch.Deleted:
			s.change(key, Version(version), nil, false, nil)
		case watch.Bookmark:
			s.bookmark(version)
		}
		if ordered || typ != watch.Added { // what comes first without a version comes in any order
			s.version = version
		}
	}
}

// open opens a watch, with the objects that exist first if asked to.
func (s *source) open(initial bool) (*frames, error) {
	seconds := int64((watchFor + rand.N(watchFor)).Seconds())
	o := metav1.ListOptions{ResourceVersion: s.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	if initial {
		o.SendInitialEvents, o.ResourceVersionMatch = &initial, metav1.ResourceVersionMatchNotOlderThan
	}
	ctx, cancel := context.WithCancel(s.ctx)
	// The timer also covers a server that accepts the request and never answers.
	idle := time.AfterFunc(s.m.o.Idle, cancel)
	s.cuts(cancel)
	body, err := s.m.o.Client.Watch(ctx, s.mapping, s.key.namespace, s.options(o))
	if err != nil {
		idle.Stop()
		cancel()
		if !initial && !s.outdated() {
			s.broken(err, "watch")
		}
		return nil, err
	}
	if initial {
		s.cover()
	}
	s.report(nil)
	return &frames{body, kjson.NewDecoderCaseSensitivePreserveInts(body), idle, s.m.o.Idle, cancel}, nil
}

// frames are the events of one open watch.
type frames struct {
	body    io.Closer
	decoder kjson.Decoder
	idle    *time.Timer
	patient time.Duration
	cancel  context.CancelFunc
}

// next waits for an event. It fails with the error that the API server tells, with errEnded, or with unreadable.
func (f *frames) next() (watch.EventType, map[string]any, error) {
	var frame struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"` // a map would be filled by reflection
	}
	if err := f.decoder.Decode(&frame); err != nil {
		if syntax, at := kjson.SyntaxErrorOffset(err); syntax {
			return "", nil, unreadable{fmt.Errorf("an event of the watch is no JSON (byte %d): %w", at, err)}
		}
		return "", nil, errEnded
	}
	obj, is := frame.Object.(map[string]any)
	if !is {
		return "", nil, unreadable{fmt.Errorf("an event of the watch (type %q) has no object", frame.Type)}
	}
	f.idle.Reset(f.patient)
	if frame.Type == watch.Error {
		return "", nil, apierrors.FromObject(statusOf(obj))
	}
	return frame.Type, obj, nil
}

func (f *frames) close() {
	f.idle.Stop()
	f.cancel()
	_ = f.body.Close()
}

// statusOf reads the object of an error event.
func statusOf(obj map[string]any) *metav1.Status {
	var status metav1.Status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &status); err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Message: "the watch ended with an error that cannot be read"}
	}
	return &status
}
