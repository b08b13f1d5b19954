package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
)

// Cut ends all watches.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *Server) cutLocked() {
	close(s.cut)
	s.cut = make(chan struct{})
}

// Expire forgets the history: watches are cut and cannot go on where they were. New ones hear.
func (s *Server) Expire() {
	s.store.Forget()
	s.Deafen(false)
	s.Cut()
}

// Deafen makes watches stay open and say nothing; false ends that for new ones.
func (s *Server) Deafen(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = on
}

// NoStreaming refuses streamed lists, as older servers do.
func (s *Server) NoStreaming() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noStream = true
}

// Deny answers a verb on a resource ("list configmaps") with a status code until
// the code is 0.
func (s *Server) Deny(what string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[what] = code
	s.cutLocked()
}

// OnRequest calls fn at the beginning of each request.
func (s *Server) OnRequest(fn func(*http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = fn
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	a, ok := parse(r)
	if !ok {
		s.api.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, a.String())
	code, gone, deaf, cut := s.denied[a.String()], s.unserved[a.gvr], s.deaf, s.cut
	noStream := s.noStream && r.URL.Query().Get("sendInitialEvents") == "true"
	s.mu.Unlock()
	switch {
	case code != 0:
		refuse(w, a, code)
	case gone:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case a.verb == "discover":
		s.discover(w, r, a)
	case a.verb == "watch" && noStream:
		Status(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is not served", nil)
	case a.verb == "watch":
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-cut:
				cancel()
			case <-ctx.Done():
			}
		}()
		if deaf {
			w = &silent{ResponseWriter: w, silent: r.URL.Query().Get("sendInitialEvents") != "true"}
		}
		s.api.ServeHTTP(w, r.WithContext(ctx))
	default:
		s.api.ServeHTTP(w, r)
	}
}

// discover leaves out what is not served any more.
func (s *Server) discover(w http.ResponseWriter, r *http.Request, a asked) {
	answer := httptest.NewRecorder()
	s.api.ServeHTTP(answer, r)
	var list map[string]any
	if answer.Code == http.StatusOK && json.Unmarshal(answer.Body.Bytes(), &list) == nil {
		s.mu.Lock()
		resources, _ := list["resources"].([]any)
		list["resources"] = slices.DeleteFunc(resources, func(v any) bool {
			name, _ := v.(map[string]any)["name"].(string)
			return s.unserved[a.gvr.GroupVersion().WithResource(name)]
		})
		s.mu.Unlock()
		answer.Body.Reset()
		_ = json.NewEncoder(answer.Body).Encode(list)
	}
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// silent drops what a watch says, once its first objects are there.
type silent struct {
	http.ResponseWriter
	silent bool
}

// Write implements [http.ResponseWriter].
func (s *silent) Write(event []byte) (int, error) {
	if s.silent {
		return len(event), nil
	}
	s.silent = bytes.Contains(event, []byte("k8s.io/initial-events-end"))
	return s.ResponseWriter.Write(event)
}

// Flush implements [http.Flusher].
func (s *silent) Flush() { s.ResponseWriter.(http.Flusher).Flush() }

// refuse answers as the Deny of this verb says.
func refuse(w http.ResponseWriter, a asked, code int) {
	switch code {
	case http.StatusForbidden:
		Status(w, code, "Forbidden", fmt.Sprintf("%s is forbidden: User \"system:serviceaccount:starling:starling\" cannot %s resource %q in API group %q in the namespace %q",
			a.gvr.Resource, a.verb, a.gvr.Resource, a.gvr.Group, a.namespace), map[string]any{"kind": a.gvr.Resource})
	case http.StatusNotFound: // of a path that the server does not know
		http.Error(w, "404 page not found", code)
	case http.StatusGone:
		Status(w, code, "Expired", "too old resource version", nil)
	case http.StatusTooManyRequests:
		Status(w, code, "TooManyRequests", "not now", nil)
	default:
		Status(w, code, "InternalError", "it broke", nil)
	}
}
