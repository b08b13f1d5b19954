package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	"github.com/starling-operator/starling/runtime/message"
)

// A child that somebody changes again and again is put right later each time, as an object of a release is.

// driftContested is the reason of the Event that tells of contested objects.
const driftContested = "DriftContested"

// contest is an object with what somebody changes of it again and again.
type contest struct {
	effect.Ref
	repairs.Contest
}

// contestedBy says that somebody changes objects again and again.
func contestedBy(contests []contest) string {
	c, where := contests[0], ""
	if n := len(c.Fields); n > 0 {
		where = " in " + c.Fields[0]
		if n > 1 {
			where += fmt.Sprintf(", one of %d fields", n)
		}
	}
	return fmt.Sprintf("%s is contested by %s%s: it was put right %d times within %.0f minutes, and waits longer each time from now on%s",
		c.Ref, cmp.Or(c.By, "somebody"), where, repairs.MaxRounds, repairs.Window.Minutes(), message.More(len(contests)-1))
}

// mostIgnores is how many parts of the list the line of leaveIt shows.
const mostIgnores = 3

// leaveIt says how to leave what is contested of a release to others: fields, or the objects as a whole where these are
// too many for one line.
func leaveIt(contests []contest) string {
	var objects, fields []string
	whole := false
	for _, c := range contests {
		name := c.Kind + "/" + c.Name
		objects = append(objects, fmt.Sprintf("%q", name))
		if len(c.Fields) == 0 {
			whole, fields = true, append(fields, fmt.Sprintf("%q", name))
		}
		for _, field := range c.Fields {
			fields = append(fields, fmt.Sprintf("%q", name+" "+field))
		}
	}
	if len(fields) > mostIgnores {
		whole, fields = true, objects
	}
	more := ""
	if n := len(fields) - mostIgnores; n > 0 {
		fields, more = fields[:mostIgnores], fmt.Sprintf("; %d more: starling describe module", n)
	}
	text := fmt.Sprintf("End the other writer, or leave it to that with module(ignore = [%s])%s", strings.Join(fields, ", "), more)
	if whole {
		text += ". To leave one field alone, write its path after the name"
	}
	return text
}

// contests counts the contested objects of a module, by who changes them.
func (m *module) contests(now time.Time) map[string]int {
	by := m.repairs.Contests(now)
	for _, h := range m.hooks {
		for _, rounds := range h.repairs {
			by = rounds.Contests(by, now)
		}
	}
	return by
}
