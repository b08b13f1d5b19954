package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
)

// Cut ends all watches: they tell of nothing that happens when it has returned.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutLocked()
}

func (s *Server) cutLocked() {
	s.end()
	s.cut, s.end = context.WithCancel(s.up)
}

// Expire forgets the history: watches are cut and cannot go on where they were.
func (s *Server) Expire() {
	s.store.Forget()
	s.Cut()
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
	code, gone, cut := s.denied[a.String()], s.unserved[a.gvr], s.cut
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
		ctx, cancel := context.WithCancel(cut)
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)()
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
