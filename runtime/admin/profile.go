package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profilePath is where the admin API answers with a profile of Go's pprof, and no other
// listener does: whoever reads it learns what the process is at.
const profilePath = "/debug/pprof/{profile}"

const (
	profileCPU   = "cpu"
	profileTrace = "trace"
	// profileLimit bounds how long a profile is collected.
	profileLimit = 5 * time.Minute
)

// Profiles returns the names of the profiles that a process has of itself, sorted: "cpu" is
// processor time. Those of locks are left out: nobody switches on what they are made from.
func Profiles() []string {
	return []string{"allocs", profileCPU, "goroutine", "heap", "threadcreate", profileTrace}
}

func profile(w http.ResponseWriter, r *http.Request) {
	// The time to read a request in has ended with it, also for what watches the connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	switch name := r.PathValue("profile"); {
	case name == profileCPU:
		pprof.Profile(w, r)
	case name == profileTrace:
		pprof.Trace(w, r)
	case slices.Contains(Profiles(), name):
		pprof.Handler(name).ServeHTTP(w, r)
	default:
		answer(w, http.StatusNotFound, failure{Error: fmt.Sprintf("there is no profile %q; there are %s", name, strings.Join(Profiles(), ", "))})
	}
}

// Profile writes one of [Profiles] to out, in the form of go tool pprof, or of go tool trace. Over
// a time, whole seconds and five minutes at most, it is what happens meanwhile; zero: all since the
// start of the process, of "cpu" and "trace" one second. Errors are those of [Client.Status], and
// that there is no such profile.
func (c *Client) Profile(ctx context.Context, out io.Writer, name string, over time.Duration) error {
	if over < 0 || over > profileLimit || over%time.Second != 0 {
		return fmt.Errorf("a profile is collected for whole seconds, %s at most, not for %s", profileLimit, over)
	}
	if over == 0 && (name == profileCPU || name == profileTrace) {
		over = time.Second
	}
	query := url.Values{}
	if over > 0 {
		query.Set("seconds", strconv.Itoa(int(over.Seconds())))
	}
	longer := *c
	longer.timeout += over
	body, err := longer.send(ctx, http.MethodGet, "/debug/pprof/"+url.PathEscape(name)+"?"+query.Encode())
	if err != nil {
		return err
	}
	_, err = out.Write(body)
	return err
}
