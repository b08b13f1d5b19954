// Package rest answers the Kubernetes REST API from a store, in the process: as an
// http.RoundTripper for client-go and Helm, as an http.Handler for a socket. It has
// discovery (grouped and aggregated), all verbs, every type of patch, watches with
// streamed lists and bookmarks. It shows no tables, and its OpenAPI documents hold no
// schemas. It speaks JSON; bodies may also be YAML, or the protobuf of typed clients.
// Everybody may do everything: there is no authentication and no RBAC.
package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/sim/store"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// maxBody is how large a request may be, as on a real server.
	maxBody          = 3 << 20
	jsonType         = "application/json"
	defaultBookmarks = time.Minute
	// Version is the Kubernetes version that the server says it has.
	Version = "v1.37.1"
)

// Options says what is served, and how.
type Options struct {
	// Store holds the objects. Required.
	Store *store.Store
	// AfterWrite, when set, is called after each write that was carried out and
	// before it is answered: the place for Store.Settle where nobody else calls it.
	AfterWrite func()
	// Bookmarks is how often watches that ask for it hear how far they have come;
	// 0 means once a minute.
	Bookmarks time.Duration
}

// Server answers requests. It is safe for concurrent use, and starts no
// goroutines.
type Server struct {
	o    Options
	read read
}

// New makes a server.
func New(o Options) *Server {
	if o.Bookmarks == 0 {
		o.Bookmarks = defaultBookmarks
	}
	return &Server{o: o}
}

// answer is what a request gets.
type answer struct {
	code     int
	typ      string
	body     any    // encoded as JSON, unless one of the next three is set
	encoded  []byte // JSON
	text     string
	stream   io.ReadCloser
	warnings []string
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.serve(r)
	header, body := a.encode()
	maps.Copy(w.Header(), header)
	w.WriteHeader(a.code)
	if a.stream == nil {
		_, _ = w.Write(body) // the client may be gone
		return
	}
	defer a.stream.Close()
	flusher, _ := w.(http.Flusher)
	if flusher != nil {
		flusher.Flush()
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := a.stream.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
			if flusher != nil {
				flusher.Flush()
			}
		}
		if err != nil {
			return
		}
	}
}

// RoundTrip implements [http.RoundTripper]: requests are answered without a
// connection, whatever host they name.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a := s.serve(r)
	header, body := a.encode()
	out := &http.Response{
		Status: fmt.Sprintf("%d %s", a.code, http.StatusText(a.code)), StatusCode: a.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r, ContentLength: -1, Body: a.stream,
	}
	if a.stream == nil {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return out, nil
}

// CloseIdleConnections is there for client-go, which logs that it misses it.
func (s *Server) CloseIdleConnections() {}

func (a *answer) encode() (http.Header, []byte) {
	typ := a.typ
	if typ == "" {
		typ = jsonType
	}
	header := http.Header{"Content-Type": {typ}, "Cache-Control": {"no-cache, private"}}
	for _, text := range a.warnings {
		if line, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", line)
		}
	}
	switch {
	case a.stream != nil:
		return header, nil
	case a.encoded != nil:
		return header, a.encoded
	case a.body == nil:
		return header, []byte(a.text)
	}
	body, err := json.Marshal(a.body)
	if err != nil { // what came in as JSON goes out as JSON
		a.code = http.StatusInternalServerError
		return header, []byte("{}")
	}
	return header, append(body, '\n')
}

// serve answers one request.
func (s *Server) serve(r *http.Request) *answer {
	a, err := s.route(r)
	switch {
	case errors.Is(err, errNowhere):
		return nowhere()
	case err != nil:
		return failure(err)
	}
	return a
}

// failure is the answer to a request that went wrong.
func failure(err error) *answer {
	var status metav1.Status
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status = api.Status()
	} else {
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	return &answer{code: int(status.Code), body: status}
}

func ok(body any) *answer { return &answer{code: http.StatusOK, body: body} }

// route finds out what a request is for.
func (s *Server) route(r *http.Request) (*answer, error) {
	path := strings.Trim(r.URL.Path, "/")
	switch path {
	case "version":
		return ok(versionInfo()), nil
	case "healthz", "readyz", "livez":
		return &answer{code: http.StatusOK, typ: "text/plain; charset=utf-8", text: "ok"}, nil
	case "api", "apis":
		return s.discover(r, path == "apis")
	}
	if path == "openapi/v3" || strings.HasPrefix(path, "openapi/v3/") {
		return s.openAPI(path)
	}
	parts := strings.Split(path, "/")
	var gv schema.GroupVersion
	switch {
	case parts[0] == "api" && len(parts) > 1:
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case parts[0] == "apis" && len(parts) == 2:
		return s.group(parts[1])
	case parts[0] == "apis" && len(parts) > 2:
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return nowhere(), nil
	}
	if len(parts) == 0 {
		return s.resources(gv)
	}
	return s.object(r, gv, parts)
}

// errNowhere stands for the answer of nowhere.
var errNowhere = errors.New("404 page not found")

// nowhere is the answer to a path that is not served.
func nowhere() *answer {
	return &answer{code: http.StatusNotFound, typ: "text/plain; charset=utf-8", text: "404 page not found\n"}
}

// unsupported is the answer to a method that a path does not take.
func unsupported(gr schema.GroupResource, r *http.Request) error {
	err := apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, strings.ToLower(r.Method), gr, "", "", 0, true)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	err.ErrStatus.Message = "the server does not allow this method on the requested resource"
	return err
}
