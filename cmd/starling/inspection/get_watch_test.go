package inspection

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

// A watch goes on while nobody answers: Starling may be starting anew, or another one leads.
func TestWatchedRowsGoOnAfterAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, said bytes.Buffer
	cmd := &cobra.Command{Use: "starling"}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	away := errors.New("nobody answers")
	answers := []any{"a", away, away, "b"}
	f := &getFlags{watch: true, out: outputFlags{format: "json"}}
	err := f.list(cmd, func() (*listing, error) {
		if len(answers) == 0 {
			cancel()
			return nil, away
		}
		next := answers[0]
		answers = answers[1:]
		if err, is := next.(error); is {
			return nil, err
		}
		table := func(io.Writer, []string, status.Options) error { return nil }
		return newListing("module", []string{next.(string)}, table, func(string) string { return "one" }), nil
	})
	if err != nil || out.String() != "\"a\"\n\"b\"\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if want := "nobody answers; asking again\n"; said.String() != want {
		t.Errorf("said %q, not %q", said.String(), want)
	}
	if err := f.list(cmd, func() (*listing, error) { return nil, away }); err != nil { // Ctrl-C has come
		t.Error(err)
	}
	cmd.SetContext(t.Context())
	if err := f.list(cmd, func() (*listing, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("the first look: %v", err)
	}
}
