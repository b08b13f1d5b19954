package inspection

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
)

// watchEvery is how often -w asks again.
const watchEvery = time.Second

// watched tells rows that change, as kubectl get -w does.
type watched struct {
	printer *printer
	// events says of each row whether it was ADDED, MODIFIED or DELETED.
	events bool
	last   *listing
	texts  map[string]string // by name, the JSON of the row
	said   []string
}

// list looks once and shows it, or, with -w, again and again, until it is told to stop: once there was an answer, an
// error is told of when it differs from the one before.
func (f *getFlags) list(cmd *cobra.Command, look func() (*listing, error)) error {
	if f.watch && f.out.format == "" && !command.OnTerminal(cmd) {
		f.out.format = "json"
	}
	p, err := f.out.printer(cmd)
	if err != nil {
		return err
	}
	if !f.watch {
		l, err := look()
		if err != nil {
			return err
		}
		return p.list(l)
	}
	w, failed := &watched{printer: p, events: f.events, texts: map[string]string{}}, ""
	for {
		l, err := look()
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case err == nil:
			if failed, err = "", w.show(l); err != nil {
				return err
			}
		case w.last == nil:
			return err
		case err.Error() != failed:
			failed = err.Error()
			command.Say(cmd, "%s; asking again", failed)
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// show shows the rows that are not as they were: at first all of them.
func (w *watched) show(l *listing) error {
	if w.printer.forPeople() {
		command.SayNotes(w.printer.cmd, slices.DeleteFunc(slices.Clone(l.notes), func(note string) bool { return slices.Contains(w.said, note) }))
		w.said = l.notes
		if w.last == nil && len(l.busy(w.printer.format == "wide")) == 0 {
			command.Say(w.printer.cmd, "%s", l.empty)
		}
	}
	first := w.last == nil
	var which []int
	var events []string
	texts := map[string]string{}
	for i, name := range l.names {
		text, err := json.Marshal(l.rows[i])
		if err != nil {
			return err
		}
		texts[name] = string(text)
		was, known := w.texts[name]
		switch {
		case known && was == texts[name]:
		case known:
			which, events = append(which, i), append(events, "MODIFIED")
		case !first || !w.printer.forPeople() || w.printer.format == "wide" || l.idle == nil || !l.idle(i):
			which, events = append(which, i), append(events, "ADDED")
		}
	}
	if l.newestFirst && !first { // the newest one stands last, at the prompt
		slices.Reverse(which)
		slices.Reverse(events)
	}
	var gone []int // rows of the last look that are not there any more
	last := w.last
	if last != nil {
		for i, name := range last.names {
			if _, there := texts[name]; !there {
				gone = append(gone, i)
			}
		}
	}
	w.last, w.texts = l, texts
	if len(gone) > 0 {
		if err := w.rows(last, gone, slices.Repeat([]string{"DELETED"}, len(gone))); err != nil {
			return err
		}
	}
	return w.rows(l, which, events)
}

func (w *watched) rows(l *listing, which []int, events []string) error {
	if len(which) == 0 {
		return nil
	}
	if !w.events {
		events = nil
	}
	return w.printer.rows(l, which, events)
}
