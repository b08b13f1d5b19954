package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/starling-operator/starling/runtime/effect"
)

// dies ends the connection at the write of this number: before it is carried out, or before its answer.
func (f *farAPI) dies(at int, carried bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.carried = at, carried
}

var errDied = errors.New("the process has died")

// alive is asked before and after each request.
func (f *farAPI) alive(r *http.Request, after bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return true
	}
	if r.Method != http.MethodGet && !after {
		f.writes++
	}
	return f.writes < f.left || f.writes == f.left && f.carried && !after && r.Method != http.MethodGet
}

// names are all objects of the kinds of tests, but those of Starling.
func (w *farWorld) names() []string {
	w.t.Helper()
	out := []string{}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
		list, err := w.reader().List(context.Background(), "v1", kind, nil, "", "")
		if err != nil {
			w.t.Fatal(err)
		}
		for _, obj := range list {
			if ref := effect.RefOf(obj); ref.Namespace != "ops" {
				out = append(out, fmt.Sprintf("%s %s/%s", ref.Kind, ref.Namespace, ref.Name))
			}
		}
	}
	return out
}

// reader is a client of somebody else, whose connection does not end.
func (w *farWorld) reader() *Client {
	w.t.Helper()
	w.api.dies(0, false)
	return w.writer.o.Client
}

func (w *farWorld) must(manager string, wr effect.Write) {
	w.t.Helper()
	if _, err := w.reader().Write(context.Background(), manager, wr); err != nil {
		w.t.Fatal(err)
	}
}

func (w *farWorld) records() (out []string) {
	w.t.Helper()
	list, err := w.reader().List(context.Background(), "v1", "Secret", []string{"ops"}, "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, obj := range list {
		out = append(out, effect.RefOf(obj).Name)
	}
	return out
}

func account(namespace, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}}
}
