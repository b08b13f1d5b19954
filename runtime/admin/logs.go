package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// logsPath is where the admin API answers with lines of the log, one JSON object each: ?module= is
// whose, ?tail= how many, and with ?follow=true it goes on with those that come.
const logsPath = "/v1/logs"

// lastLines is how long a stop waits for a reader that stands still.
const lastLines = time.Second

// LogsOptions say which lines [Client.Logs] asks for.
type LogsOptions struct {
	// Module is whose; empty: all of the process.
	Module string
	// Tail is how many of the last lines come; negative: all that are kept.
	Tail int
	// Follow goes on with the lines that come.
	Follow bool
}

// logs answers until the lines end, the client is gone, or stopping ends.
func logs(stopping context.Context, o Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		tail, err := strconv.Atoi(q.Get("tail"))
		if err != nil {
			answer(w, http.StatusBadRequest, failure{Error: fmt.Sprintf("tail %q is no number", q.Get("tail"))})
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		follow := q.Get("follow") == "true"
		control := http.NewResponseController(w)
		if follow { // for as long as somebody reads
			_ = control.SetReadDeadline(time.Time{})
			_ = control.SetWriteDeadline(time.Time{})
		}
		defer context.AfterFunc(stopping, func() {
			cancel()
			_ = control.SetWriteDeadline(time.Now().Add(lastLines))
		})()
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(http.StatusOK)
		_ = control.Flush()
		for line := range o.Logs(ctx, q.Get("module"), tail, follow) {
			if _, err := w.Write(line); err != nil {
				return
			}
			if follow && control.Flush() != nil {
				return
			}
		}
	}
}

// Logs calls line with each line of the log that is asked for, a JSON object without its end. With
// Follow it ends with ctx, or with the process that is asked. Errors are those of [Client.Status],
// and those of line.
func (c *Client) Logs(ctx context.Context, o LogsOptions, line func([]byte) error) error {
	query := url.Values{"module": {o.Module}, "tail": {strconv.Itoa(o.Tail)}, "follow": {strconv.FormatBool(o.Follow)}}
	if !o.Follow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	res, err := c.open(ctx, http.MethodGet, logsPath+"?"+query.Encode())
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for {
		text, err := lines.ReadBytes('\n')
		if n := len(text); n > 0 && text[n-1] == '\n' {
			if err := line(text[:n-1]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), o.Follow && (errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil):
			return nil
		default:
			return c.explain(ctx, err)
		}
	}
}
