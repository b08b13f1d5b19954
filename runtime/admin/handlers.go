package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/tlsfiles"
)

const (
	// statusPath is where the admin API answers with the whole status.
	statusPath = "/v1/status"
	// explainPath is where it answers with the sources of the values of ?module=.
	explainPath = "/v1/explain"
	// parentsPath is where it answers what controllers of ?module= have decided about ?key=.
	parentsPath = "/v1/parents"
	// queuesPath is where it answers what waits in the lanes of all modules.
	queuesPath = "/v1/queues"
	// runPath is where a POST has the hooks of ?module= run, or ?hook= alone; it answers with their ids.
	runPath = "/v1/run"
	// snapshotsPath is where it answers with the snapshots of ?hook=.
	snapshotsPath = "/v1/snapshots"
	// replicaPath is where it answers whether this process leads, and how it is.
	replicaPath = "/v1/replica"
)

// logLevelPath is where it answers with the least level that is logged, and takes another
// one as ?level= of a PUT.
const logLevelPath = "/v1/log-level"

// webHandler answers what any neighbour may ask: metrics and health.
func webHandler(o Options) http.Handler {
	mux := http.NewServeMux()
	metrics := promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{
		ErrorLog: errorLog(o.Log),
		// One broken metric of a hook must not hide all others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if o.ClientCA != "" && !tlsfiles.Known(r.TLS) {
			text(w, http.StatusForbidden, "the client shows no certificate of --metrics-client-ca")
			return
		}
		metrics.ServeHTTP(w, r)
	})
	probe := func(what string, asked func() (bool, string)) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if ok, reason := asked(); !ok {
				text(w, http.StatusServiceUnavailable, "not "+what+": "+reason)
				return
			}
			text(w, http.StatusOK, "ok")
		}
	}
	mux.HandleFunc("GET /healthz", probe("healthy", o.Healthy))
	mux.HandleFunc("GET /readyz", probe("ready", o.Ready))
	mux.HandleFunc("GET /readyz/modules", probe("ready", o.Released))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text(w, http.StatusNotFound, "nothing here; there are GET /metrics, /healthz, /readyz and /readyz/modules")
	})
	return mux
}

// adminHandler answers on the socket only. Answers that go on for long end with stopping.
func adminHandler(stopping context.Context, o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, r *http.Request) {
		st, err := o.Status(r.Context())
		reply(w, http.StatusInternalServerError, err, st)
	})
	mux.HandleFunc("GET "+explainPath, func(w http.ResponseWriter, r *http.Request) {
		in, err := o.Explain(r.Context(), r.URL.Query().Get("module"))
		if err != nil {
			answer(w, http.StatusNotFound, failure{Error: err.Error()})
			return
		}
		answer(w, http.StatusOK, in.Explain())
	})
	mux.HandleFunc("GET "+parentsPath, func(w http.ResponseWriter, r *http.Request) {
		parents, err := o.Parents(r.Context(), r.URL.Query().Get("module"), r.URL.Query().Get("key"))
		reply(w, http.StatusNotFound, err, parents)
	})
	logLevel := func(w http.ResponseWriter, level string) {
		was, err := o.LogLevel(level)
		reply(w, http.StatusBadRequest, err, was)
	}
	mux.HandleFunc("GET "+logLevelPath, func(w http.ResponseWriter, _ *http.Request) { logLevel(w, "") })
	mux.HandleFunc("PUT "+logLevelPath, func(w http.ResponseWriter, r *http.Request) { logLevel(w, r.URL.Query().Get("level")) })
	mux.HandleFunc("GET "+replicaPath, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, o.Replica()) })
	mux.HandleFunc("GET "+recordsPath, records(o))
	mux.HandleFunc("GET "+recordPath, bundle(o))
	mux.HandleFunc("GET "+recordsKeyPath, func(w http.ResponseWriter, r *http.Request) {
		key, err := o.RecordsKey(r.Context())
		reply(w, http.StatusNotFound, err, key)
	})
	mux.HandleFunc("GET "+queuesPath, func(w http.ResponseWriter, r *http.Request) {
		queues, err := o.Queues(r.Context())
		reply(w, http.StatusInternalServerError, err, queues)
	})
	mux.HandleFunc("POST "+runPath, func(w http.ResponseWriter, r *http.Request) {
		hooks, err := o.RunNow(r.Context(), r.URL.Query().Get("module"), r.URL.Query().Get("hook"))
		reply(w, http.StatusConflict, err, hooks)
	})
	mux.HandleFunc("GET "+snapshotsPath, func(w http.ResponseWriter, r *http.Request) {
		snapshots, err := o.Snapshots(r.Context(), r.URL.Query().Get("hook"))
		reply(w, http.StatusNotFound, err, snapshots)
	})
	mux.HandleFunc("GET "+profilePath, profile)
	mux.HandleFunc("GET "+logsPath, logs(stopping, o))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, failure{Error: fmt.Sprintf("the admin API has no %s %s", r.Method, r.URL.Path)})
	})
	return mux
}

// failure is the body of every answer of the admin API that is not a success.
type failure struct {
	Error string `json:"error"`
}

// reply writes v, or with that code the error.
func reply(w http.ResponseWriter, code int, err error, v any) {
	if err != nil {
		answer(w, code, failure{Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, v)
}

// answer writes v as JSON. It is made before the first byte leaves, so that a
// value that cannot be written is a clean 500 and not half a document.
func answer(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		code = http.StatusInternalServerError
		body, _ = json.Marshal(failure{Error: "cannot write the answer: " + err.Error()})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // a client that is gone is no error of ours
}

func text(w http.ResponseWriter, code int, msg string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, msg+"\n")
}

// errorLog takes what net/http and promhttp want to say to the log, as warnings.
func errorLog(log zerolog.Logger) *stdlog.Logger { return stdlog.New(warnings{log}, "", 0) }

type warnings struct{ log zerolog.Logger }

func (w warnings) Write(line []byte) (int, error) {
	n := len(line)
	for n > 0 && line[n-1] == '\n' {
		n--
	}
	w.log.Warn().Str("part", "http").Msg(string(line[:n]))
	return len(line), nil
}
