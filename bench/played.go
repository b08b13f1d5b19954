package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/e2e/proxy"
)

// played are objects of one kind that a relay serves itself, in the place of the API server: as many as that
// could not hold beside Starling on a small machine. Nobody writes them but the bench.
type played struct {
	path       string // of the list: "/api/v1/namespaces"
	apiVersion string
	kind       string
	namespace  string
	name       string // of the objects, before their number
	text       string // in the data of a ConfigMap
	count      int

	mu      sync.Mutex
	version int
	changed map[int]int // version by object
	streams map[chan []byte]bool
}

// playedVersion is where versions begin, far above those of the API server.
const playedVersion = 1_000_000_000

// serves says that a request is for the objects.
func (p *played) serves(req *http.Request) bool {
	return req.Method == http.MethodGet && req.URL.Path == p.path
}

// serve answers a request for the objects.
func (p *played) serve(w http.ResponseWriter, req *http.Request, _ http.Handler, _ *rand.Rand) {
	w.Header().Set("Content-Type", "application/json")
	if proxy.Watches(req) {
		p.stream(w, req)
		return
	}
	p.list(w)
}

// object is one of them. It is called with the mutex held.
func (p *played) object(i int) map[string]any {
	name := fmt.Sprintf("%s-%d", p.name, i)
	metadata := map[string]any{
		"name": name, "uid": "played-" + name, "creationTimestamp": "2026-01-01T00:00:00Z",
		"resourceVersion": fmt.Sprint(playedVersion + p.changed[i]),
		"labels":          map[string]any{"bench": "played", "team": fmt.Sprintf("team-%d", i%100)},
	}
	out := map[string]any{"apiVersion": p.apiVersion, "kind": p.kind, "metadata": metadata}
	if p.namespace == "" {
		out["status"] = map[string]any{"phase": "Active"}
		return out
	}
	metadata["namespace"] = p.namespace
	out["data"] = map[string]any{"text": p.text, "stamp": fmt.Sprint(p.changed[i])}
	return out
}

func (p *played) list(w http.ResponseWriter) {
	p.mu.Lock()
	items := make([]map[string]any, p.count)
	for i := range items {
		items[i] = p.object(i)
	}
	version := playedVersion + p.version
	p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{ // whoever asked may have gone
		"apiVersion": p.apiVersion, "kind": p.kind + "List",
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(version)}, "items": items,
	})
}

// stream serves a watch: all objects first where that is asked for, then changes.
func (p *played) stream(w http.ResponseWriter, req *http.Request) {
	changes := make(chan []byte, 1<<16)
	p.mu.Lock()
	if p.streams == nil {
		p.streams = map[chan []byte]bool{}
	}
	p.streams[changes] = true
	var first strings.Builder
	if proxy.Streams(req) {
		for i := range p.count {
			first.Write(frame("ADDED", p.object(i)))
		}
		first.Write(p.bookmark(true))
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.streams, changes)
	}()
	send := func(data []byte) bool {
		_, err := w.Write(data)
		w.(http.Flusher).Flush()
		return err == nil
	}
	if !send([]byte(first.String())) {
		return
	}
	first.Reset()
	alive := time.NewTicker(20 * time.Second)
	defer alive.Stop()
	for {
		var next []byte
		select {
		case <-req.Context().Done():
			return
		case next = <-changes:
		case <-alive.C:
			p.mu.Lock()
			next = p.bookmark(false)
			p.mu.Unlock()
		}
		if !send(next) {
			return
		}
	}
}

func (p *played) bookmark(initial bool) []byte {
	metadata := map[string]any{"resourceVersion": fmt.Sprint(playedVersion + p.version)}
	if initial {
		metadata["annotations"] = map[string]any{"k8s.io/initial-events-end": "true"}
	}
	return frame("BOOKMARK", map[string]any{"apiVersion": p.apiVersion, "kind": p.kind, "metadata": metadata})
}

func frame(event string, obj map[string]any) []byte {
	data, _ := json.Marshal(map[string]any{"type": event, "object": obj}) // texts alone
	return append(data, '\n')
}

// change changes an object, and tells all streams.
func (p *played) change(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = map[int]int{}
	}
	p.version++
	p.changed[i] = p.version
	event := frame("MODIFIED", p.object(i))
	for stream := range p.streams {
		stream <- event
	}
}
