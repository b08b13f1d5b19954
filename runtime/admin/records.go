package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/starling-operator/starling/runtime/record"
)

const (
	// recordsKeyPath is where the admin API answers with the key of the records of runs. A process that may
	// open the socket may read the process' memory.
	recordsKeyPath = "/v1/records-key"
	// recordsPath is where it answers with [Runs].
	recordsPath = "/v1/records"
	// recordPath is where it answers with the sealed files of the run ?id=.
	recordPath = "/v1/record"
)

// Runs are the records that a process keeps.
type Runs struct {
	// Headers are those of its runs, the newest first. They say why a run has failed when the process has the key.
	Headers []record.Header `json:"headers"`
	// Others is how many records of other versions there are.
	Others int `json:"others,omitempty"`
}

// noRecords answers where no records are kept.
func noRecords(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusNotFound, failure{Error: "this starling keeps no records of runs"})
}

func records(o Options) http.HandlerFunc {
	if o.RecordsDir == "" {
		return noRecords
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var key *record.Key
		if raw, err := o.RecordsKey(r.Context()); err == nil {
			key, _ = record.ParseKey(raw) // without it all but the errors is known
		}
		runs, others, err := record.List(o.RecordsDir, key)
		reply(w, http.StatusInternalServerError, err, Runs{Headers: runs, Others: others})
	}
}

func bundle(o Options) http.HandlerFunc {
	if o.RecordsDir == "" {
		return noRecords
	}
	return func(w http.ResponseWriter, r *http.Request) {
		files, err := record.Bundle(o.RecordsDir, r.URL.Query().Get("id"))
		reply(w, http.StatusNotFound, err, files)
	}
}

// RecordsKey asks for the key of the records of runs. Errors are those of
// [Client.Status], and that there is none.
func (c *Client) RecordsKey(ctx context.Context) ([]byte, error) {
	var key []byte
	return key, c.ask(ctx, recordsKeyPath, &key)
}

// Runs asks for the runs that are recorded. Errors are those of [Client.Status].
func (c *Client) Runs(ctx context.Context) (Runs, error) {
	var runs Runs
	err := c.ask(ctx, recordsPath, &runs)
	return runs, err
}

// Record asks for the files of a run, for [record.Unpack]. Errors are those of [Client.Status], and that the run
// cannot be read.
func (c *Client) Record(ctx context.Context, id string) (map[string][]byte, error) {
	var files map[string][]byte
	err := c.ask(ctx, recordPath+"?"+url.Values{"id": {id}}.Encode(), &files)
	return files, err
}
