package instance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	return t.follow(cmd, pods, o, print)
}

// followEvery is how often pods are looked for that are new, as all are after a rollout.
const followEvery = 2 * time.Second

// podLog is what was read of the log of a pod.
type podLog struct {
	open bool
	last time.Time // of its lines
	note string    // how it ended
}

// follow reads the logs of pods that are there and of those that come, until Ctrl-C, or print fails. A pod that goes, as
// each does in a rollout, ends its own part; that none of the first ones answers is an error.
func (t *Target) follow(cmd *cobra.Command, pods []replicas.Pod, o admin.LogsOptions, print func(line []byte) error) error {
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	var mu sync.Mutex // of all below, and of what is printed
	logs, open, answered := map[string]*podLog{}, 0, false
	var reading sync.WaitGroup
	read := func(p replicas.Pod, l *podLog, after time.Time) {
		client := t.dial(p)
		defer client.Close()
		err := client.Logs(ctx, o, func(text []byte) error {
			mu.Lock()
			defer mu.Unlock()
			line := newPodLine(p.Name, text)
			if !line.at.IsZero() && !line.at.After(after) {
				return nil // the same process, asked again
			}
			l.last, answered = line.at, true
			if err := print(line.text); err != nil {
				stop(err)
			}
			return nil
		})
		mu.Lock()
		defer mu.Unlock()
		l.open, answered = false, answered || err == nil
		open--
		if note := cmp.Or(err, fmt.Errorf("the log of pod %s has ended", p.Name)).Error(); ctx.Err() == nil && note != l.note {
			l.note = note
			command.Say(cmd, "note: %s", note)
		}
	}
	for ctx.Err() == nil {
		mu.Lock()
		for _, p := range pods {
			if logs[p.Name] == nil {
				logs[p.Name] = &podLog{}
			}
			if l := logs[p.Name]; !l.open {
				after := l.last
				l.open = true
				open++
				reading.Go(func() { read(p, l, after) })
			}
		}
		mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(followEvery):
		}
		mu.Lock()
		if open == 0 && !answered && ctx.Err() == nil {
			stop(errors.New("no pod answers"))
		}
		mu.Unlock()
		if next, err := t.pods(ctx); err == nil { // else those that are known are read on
			pods = next
		}
	}
	reading.Wait()
	if cmd.Context().Err() != nil { // Ctrl-C ends it well
		return nil
	}
	return context.Cause(ctx)
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
