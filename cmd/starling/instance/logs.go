package instance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	return t.follow(cmd, pods, o, print)
}

// followEvery is how often pods are looked for that are new, as all are after a rollout.
const followEvery = 2 * time.Second

// follow reads the logs of pods, of new ones too, until Ctrl-C, or print fails. A pod that goes, as each does in a
// rollout, ends its own part; that none of the first ones answers is an error.
func (t *Target) follow(cmd *cobra.Command, pods []replicas.Pod, o admin.LogsOptions, print func([]byte) error) error {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	open, seen, notes, answered := map[string]bool{}, map[string]time.Time{}, map[string]string{}, false // by pod
	events := make(chan func() error)
	send := func(event func() error) {
		select {
		case events <- event:
		case <-ctx.Done():
		}
	}
	read := func(p replicas.Pod, o admin.LogsOptions, after time.Time) {
		began, client := time.Now(), t.dial(p)
		defer client.Close()
		err := client.Logs(ctx, o, func(text []byte) error {
			line := newPodLine(p.Name, text)
			if !line.at.IsZero() && !line.at.After(after) {
				return nil // the same process, asked again
			}
			send(func() error {
				if line.at.After(seen[p.Name]) {
					seen[p.Name] = line.at
				}
				delete(notes, p.Name)
				answered = true
				return print(line.text)
			})
			return nil
		})
		send(func() error {
			delete(open, p.Name)
			note := cmp.Or(err, fmt.Errorf("the log of pod %s has ended", p.Name)).Error()
			if note != notes[p.Name] {
				command.Say(cmd, "note: %s", note)
			}
			notes[p.Name] = note
			answered = answered || err == nil || time.Since(began) > askWithin // one without a line
			if !answered && len(open) == 0 {
				return errors.New("no pod answers")
			}
			return nil
		})
	}
	looks := time.NewTicker(followEvery)
	defer looks.Stop()
	for {
		for _, p := range pods {
			if !open[p.Name] {
				open[p.Name] = true
				go read(p, o, seen[p.Name])
			}
		}
		pods, o.Tail = nil, -1 // of new pods, and of one that is read again, all that was not seen
		select {
		case <-ctx.Done(): // Ctrl-C ends it well
			return nil
		case event := <-events:
			if ctx.Err() == nil {
				if err := event(); err != nil {
					return err
				}
			}
		case <-looks.C:
			pods, _ = t.pods(ctx) // none while the API server is away
		}
	}
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
