package instance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/replicas"
)

// Logs calls print with the lines of the log of the one that client asks. Of pods, unless one is named, they are those
// of all, in the order of their times; of lines that come in that in which they come.
func (t *Target) Logs(
	cmd *cobra.Command, client *admin.Client, o admin.LogsOptions, print func(line []byte) error,
) error {
	if !t.Remote() || t.pod != "" {
		return t.Instance.Explain(client.Logs(cmd.Context(), o, print))
	}
	pods, err := t.pods(cmd.Context())
	if err != nil {
		return err
	}
	if !o.Follow {
		var lists [][]podLine
		err := t.each(cmd, pods, func(p replicas.Pod, client *admin.Client) error {
			var lines []podLine
			err := client.Logs(cmd.Context(), o, func(line []byte) error {
				lines = append(lines, newPodLine(p.Name, line))
				return nil
			})
			lists = append(lists, lines)
			return err
		})
		all := sorted(lists, func(a, b podLine) int { return a.at.Compare(b.at) })
		if o.Tail >= 0 && len(all) > o.Tail {
			all = all[len(all)-o.Tail:]
		}
		for _, line := range all {
			err = cmp.Or(err, print(line.text))
		}
		return err
	}
	// A pod that goes, as each does in a rollout, ends its own part.
	var printing sync.Mutex
	failed := make([]error, len(pods))
	var following sync.WaitGroup
	for i, p := range pods {
		following.Go(func() {
			client := t.dial(p)
			defer client.Close()
			failed[i] = client.Logs(cmd.Context(), o, func(line []byte) error {
				printing.Lock()
				defer printing.Unlock()
				return print(newPodLine(p.Name, line).text)
			})
			if cmd.Context().Err() == nil {
				printing.Lock()
				defer printing.Unlock()
				ended := fmt.Errorf("the log of pod %s has ended; for that of new pods start again", p.Name)
				command.Say(cmd, "note: %v", cmp.Or(failed[i], ended))
			}
		})
	}
	following.Wait()
	if slices.Contains(failed, nil) || cmd.Context().Err() != nil { // Ctrl-C ends it well
		return nil
	}
	return errors.New("no pod answers")
}

// podLine is a line of the log of a pod.
type podLine struct {
	at   time.Time
	text []byte
}

// newPodLine adds the name of the pod to a line of JSON.
func newPodLine(pod string, line []byte) podLine {
	var when struct{ Time time.Time }
	_ = json.Unmarshal(line, &when) // a line without a time comes first
	return podLine{when.Time, append(fmt.Appendf(nil, `{"pod":%q,`, pod), bytes.TrimPrefix(line, []byte("{"))...)}
}
