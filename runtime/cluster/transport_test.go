package cluster

import (
	"net/http"
	"net/http/httptest"
)

// handlerTransport answers requests with a handler, without a network.
type handlerTransport struct{ h http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	served := r.Clone(r.Context())
	if r.Body == nil {
		served.Body = http.NoBody // as a server has it
	}
	t.h.ServeHTTP(w, served)
	res := w.Result()
	res.Request = r
	return res, nil
}
