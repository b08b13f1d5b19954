package proxy

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Striker deals with one request. next passes it on; dice are those of this request.
type Striker = func(w http.ResponseWriter, r *http.Request, next http.Handler, dice *rand.Rand)

// Refuse answers with a status code, and, when after is not 0, with the time after which to come back. The
// request does not reach the server.
func Refuse(code int, reason metav1.StatusReason, message string, after time.Duration) Striker {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler, _ *rand.Rand) {
		if after > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
		})
	}
}

// Page answers with a status code and a page of a load balancer, which is no JSON.
func Page(code int) Striker {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler, _ *rand.Rand) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "<html><body><h1>"+http.StatusText(code)+"</h1></body></html>")
	}
}

// Abort cuts the request off before it reaches the server.
func Abort(http.ResponseWriter, *http.Request, http.Handler, *rand.Rand) { panic(http.ErrAbortHandler) }

// Unanswered lets a request reach the server, and cuts its answer off.
func Unanswered(_ http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
	next.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// Late keeps a request for a while before it reaches the server.
func Late(least, most time.Duration) Striker {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, dice *rand.Rand) {
		wait(r, between(dice, least, most))
		next.ServeHTTP(w, r)
	}
}

// LateAnswer keeps an answer for a while after the request has reached the server. It is for all but watches.
func LateAnswer(least, most time.Duration) Striker {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, dice *rand.Rand) {
		answer := record(r, next)
		wait(r, between(dice, least, most))
		repeat(w, answer, answer.Body.Bytes())
	}
}

// Slow sends an answer in parts, with a wait between them. It is for all but watches.
func Slow(parts int, between time.Duration) Striker {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
		answer := record(r, next)
		body := answer.Body.Bytes()
		size := len(body)/parts + 1
		repeat(w, answer, nil)
		for len(body) > 0 {
			n := min(size, len(body))
			if _, err := w.Write(body[:n]); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			body = body[n:]
			wait(r, between)
		}
	}
}

// WrongBytes sends an answer with its second half missing, with other bytes in the midst of it, or a page of a
// load balancer in its place, with the code of success. It is for all but watches.
func WrongBytes(w http.ResponseWriter, r *http.Request, next http.Handler, dice *rand.Rand) {
	answer := record(r, next)
	body := answer.Body.Bytes()
	switch half := len(body) / 2; dice.IntN(3) {
	case 0:
		body = body[:half]
	case 1:
		body = append(append(append([]byte{}, body[:half]...), 0xff, '{', ']', 0), body[half:]...)
	default:
		Page(http.StatusOK)(w, r, nil, dice)
		return
	}
	repeat(w, answer, body)
}

// SmallPages has lists come in pages of n objects.
func SmallPages(n int) Striker {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
		query := r.URL.Query()
		query.Set("limit", strconv.Itoa(n))
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
		next.ServeHTTP(w, r)
	}
}

// Stale answers a list with what an earlier one has got, as a server that lags behind does. An answer is kept
// for the next list of the same objects.
func Stale() Striker {
	var mu sync.Mutex
	kept := map[string]*httptest.ResponseRecorder{}
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, _ *rand.Rand) {
		answer := record(r, next)
		if answer.Code == http.StatusOK {
			key := r.URL.String()
			mu.Lock()
			kept[key], answer = answer, orElse(kept[key], answer)
			mu.Unlock()
		}
		repeat(w, answer, answer.Body.Bytes())
	}
}

func orElse[T any](first, second *T) *T {
	if first != nil {
		return first
	}
	return second
}

// between is a time that is drawn.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)+1))
}

// wait ends early with the request.
func wait(r *http.Request, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// record returns the answer to a request, as plain text.
func record(r *http.Request, next http.Handler) *httptest.ResponseRecorder {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "identity")
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	return answer
}

// repeat sends an answer with this body.
func repeat(w http.ResponseWriter, answer *httptest.ResponseRecorder, body []byte) {
	for name, values := range answer.Header() {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(body)
}
