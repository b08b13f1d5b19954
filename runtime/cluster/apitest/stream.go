package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which objects a list or watch is for.
type selection struct {
	prefix string
	labels labels.Selector
	fields fields.Selector
}

func (sel selection) matches(k Kind, obj map[string]any) bool {
	meta := obj["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	typ, _ := obj["type"].(string)
	set := labels.Set{}
	found, _ := meta["labels"].(map[string]any)
	for key, v := range found {
		set[key], _ = v.(string)
	}
	return strings.HasPrefix(objectPath(k, namespace, name), sel.prefix) &&
		sel.labels.Matches(set) && sel.fields.Matches(fields.Set{"metadata.name": name, "metadata.namespace": namespace, "type": typ})
}

func (s *Server) collection(w http.ResponseWriter, r *http.Request, k Kind, namespace string) {
	q := r.URL.Query()
	sel := selection{prefix: groupPath(k.APIVersion) + "/", labels: labels.Everything(), fields: fields.Everything()}
	if namespace != "" {
		sel.prefix = objectPath(k, namespace, "")
	}
	if text := q.Get("labelSelector"); text != "" {
		sel.labels, _ = labels.Parse(text)
	}
	if text := q.Get("fieldSelector"); text != "" {
		sel.fields, _ = fields.ParseSelector(text)
	}
	verb := "list"
	if q.Get("watch") == "true" {
		verb = "watch"
	}
	if r.Method == http.MethodPost {
		verb = "create"
	}
	if code := s.note(verb + " " + k.Resource); code != 0 {
		refuse(w, k, verb, namespace, code)
		return
	}
	if verb == "create" {
		s.create(w, r, k, namespace)
		return
	}
	if verb == "watch" {
		s.watch(w, r, k, sel)
		return
	}
	s.list(w, r, k, sel)
}

// found returns the selected objects, by path.
func (s *Server) found(k Kind, sel selection) []map[string]any {
	var out []map[string]any
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		obj := s.objects[path]
		if obj["kind"] == k.Kind && obj["apiVersion"] == k.APIVersion && sel.matches(k, obj) {
			out = append(out, obj)
		}
	}
	return out
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, k Kind, sel selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	version, offset := s.version, 0
	if token := q.Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d-%d", &version, &offset); err != nil || version < s.oldest {
			Status(w, http.StatusGone, "Expired", "the continue token is too old", nil)
			return
		}
	}
	all := s.found(k, sel)
	limit, _ := strconv.Atoi(q.Get("limit"))
	end, token := len(all), ""
	if limit > 0 && offset+limit < len(all) {
		end = offset + limit
		token = fmt.Sprintf("%d-%d", version, end)
	}
	items := []any{}
	for _, obj := range all[min(offset, len(all)):end] {
		// As for built-in kinds, items do not say what they are.
		item := maps.Clone(obj)
		delete(item, "kind")
		delete(item, "apiVersion")
		items = append(items, item)
	}
	reply(w, map[string]any{
		"kind": k.Kind + "List", "apiVersion": k.APIVersion,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "continue": token},
		"items":    items,
	})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, k Kind, sel selection) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	initial := q.Get("sendInitialEvents") == "true"

	s.mu.Lock()
	epoch, deaf := s.epoch, s.deaf
	if initial && s.noStream {
		s.mu.Unlock()
		Status(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is not served", nil)
		return
	}
	if !initial && from < s.oldest {
		s.mu.Unlock()
		Status(w, http.StatusGone, "Expired", "too old resource version", nil)
		return
	}
	var first []map[string]any
	if initial {
		first, from = s.found(k, sel), s.version
	}
	s.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := json.NewEncoder(w)
	send := func(typ string, obj map[string]any) { _ = out.Encode(map[string]any{"type": typ, "object": obj}) }
	for _, obj := range first {
		send("ADDED", obj)
	}
	if initial {
		send("BOOKMARK", map[string]any{"kind": k.Kind, "apiVersion": k.APIVersion, "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(from),
			"annotations":     map[string]any{"k8s.io/initial-events-end": "true"},
		}})
	}
	for {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		cut, changed := s.epoch != epoch, s.changed
		var news []change
		for _, c := range s.history {
			if c.version > from && c.resource == k.APIVersion+"/"+k.Resource && sel.matches(k, c.object) {
				news = append(news, c)
			}
		}
		from = max(from, s.version)
		s.mu.Unlock()
		if cut {
			return
		}
		if !deaf {
			for _, c := range news {
				send(c.typ, c.object)
			}
			w.(http.Flusher).Flush()
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
