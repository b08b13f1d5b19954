package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// serveCollector starts a collector of OpenTelemetry, whose URL it keeps in a variable of the script:
// "collector NAME FILE". The file gets a line for each span, with the names of those above it:
// "event added > run web/a".
func serveCollector(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: collector NAME FILE")
	}
	path := ts.MkAbs(args[1])
	ts.Check(os.WriteFile(path, nil, 0o600))
	var mu sync.Mutex
	known := map[string]string{} // the line of a span, by its id
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct {
						SpanID, ParentSpanID, Name string
						Status                     struct{ Code int }
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/traces" {
			http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
			return
		}
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer file.Close()
		for _, rs := range body.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					line := s.Name
					if s.Status.Code == 2 {
						line += " (failed)"
					}
					if s.ParentSpanID != "" {
						line = known[s.ParentSpanID] + " > " + line
					}
					known[s.SpanID] = line
					fmt.Fprintln(file, line)
				}
			}
		}
		fmt.Fprint(w, "{}")
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}
