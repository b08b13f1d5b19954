package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// single serves one object. An apply puts what is sent in the place of what is
// there, and evictions and deletes take it away.
func (s *Server) single(w http.ResponseWriter, r *http.Request, k Kind, namespace string, parts []string) {
	name, verb := parts[0], strings.ToLower(r.Method)
	what := verb + " " + k.Resource
	if len(parts) > 1 {
		what += "/" + parts[1]
	}
	if code := s.note(what); code != 0 {
		refuse(w, k, verb, namespace, code)
		return
	}
	body, _ := io.ReadAll(r.Body)
	path := objectPath(k, namespace, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := s.objects[path]
	apply := r.Method == http.MethodPatch && strings.Contains(r.Header.Get("Content-Type"), "apply-patch")
	switch {
	case obj == nil && !apply:
		Status(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", k.Resource, name), map[string]any{"name": name, "kind": k.Resource})
	case r.Method == http.MethodGet:
		reply(w, obj)
	case r.Method == http.MethodDelete, len(parts) > 1 && parts[1] == "eviction":
		if !precondition(body, obj) {
			conflict(w, name)
			return
		}
		s.removeLocked(k, path)
		reply(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		sent, err := patched(r.Header.Get("Content-Type"), obj, body)
		if err != nil {
			Status(w, http.StatusBadRequest, "BadRequest", err.Error(), nil)
			return
		}
		// As the API server: an apply to nothing makes the object, whatever version
		// it claims, unless it claims a uid.
		meta := metaOf(sent)
		if claimed := meta["resourceVersion"]; obj != nil && claimed != nil && claimed != metaOf(obj)["resourceVersion"] || obj == nil && meta["uid"] != nil {
			conflict(w, name)
			return
		}
		reply(w, s.putLocked(k, path, sent))
	}
}

// create serves the POST of a collection.
func (s *Server) create(w http.ResponseWriter, r *http.Request, k Kind, namespace string) {
	var sent map[string]any
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		Status(w, http.StatusBadRequest, "BadRequest", "no JSON", nil)
		return
	}
	name, _ := metaOf(sent)["name"].(string)
	path := objectPath(k, namespace, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[path] != nil {
		Status(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", k.Resource, name), map[string]any{"name": name})
		return
	}
	reply(w, s.putLocked(k, path, sent))
}

// patched is what a patch, an apply or an update makes of an object.
func patched(contentType string, obj map[string]any, body []byte) (map[string]any, error) {
	old, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(contentType, "json-patch"):
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, err
		}
		if body, err = patch.Apply(old); err != nil {
			return nil, err
		}
	case strings.Contains(contentType, "merge-patch"): // the strategic one too
		if body, err = jsonpatch.MergePatch(old, body); err != nil {
			return nil, err
		}
	}
	var out map[string]any
	err = json.Unmarshal(body, &out)
	return out, err
}

// precondition reads that of a delete or an eviction.
func precondition(body []byte, obj map[string]any) bool {
	type options struct {
		Preconditions map[string]any `json:"preconditions"`
	}
	var sent struct {
		options
		DeleteOptions options `json:"deleteOptions"`
	}
	_ = json.Unmarshal(body, &sent)
	want := sent.Preconditions
	if want == nil {
		want = sent.DeleteOptions.Preconditions
	}
	for k, v := range want {
		if metaOf(obj)[k] != v {
			return false
		}
	}
	return true
}

func conflict(w http.ResponseWriter, name string) {
	Status(w, http.StatusConflict, "Conflict", "the object has been modified", map[string]any{"name": name})
}

func metaOf(obj map[string]any) map[string]any {
	m, _ := obj["metadata"].(map[string]any)
	return m
}
