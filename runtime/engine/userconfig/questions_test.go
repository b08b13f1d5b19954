package userconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/values"
)

// asked takes in a ConfigMap while the module web has code that is asked, and returns the question.
func (c *Config) asked(t *testing.T, data ...string) (Question, Outcome) {
	t.Helper()
	in := Input{State: Present, Data: map[string]string{}}
	for _, line := range data {
		key, text, _ := strings.Cut(line, "=")
		in.Data[key] = text
	}
	c.See(in)
	return c.again(t)
}

func (c *Config) again(t *testing.T) (Question, Outcome) {
	t.Helper()
	all := sections()
	all[1].Asks = "code"
	_, questions := c.Apply(all)
	if len(questions) > 1 {
		t.Errorf("questions %+v", questions)
	}
	out := c.Count()
	for _, q := range questions {
		return q, out
	}
	return Question{}, out
}

// Until the module has answered, all of it stays as it is: its section, its switch and its policies. Others move.
func TestWhatIsAskedWaits(t *testing.T) {
	c := newConfig()
	q, out := c.asked(t, "web=x: 1", "webEnabled=true", "webPaused=true", "global=x: 1")
	if q.Module != "web" || q.Old != nil || q.New["x"] != int64(1) || fmt.Sprint(out.Moved) != "[global]" || !c.Asking("web") || c.force() != "<nil>" {
		t.Fatalf("asked %+v, moved %v, in force %s", q, out.Moved, c.force())
	}
	if q, out := c.asked(t, "web=x: 1", "webEnabled=true", "webPaused=true", "global=x: 2"); q.ID != "" || fmt.Sprint(out.Moved) != "[global]" {
		t.Errorf("asked again %+v, moved %v", q, out.Moved)
	}
	if c.Answer("web", "another", "") || !c.Answer("web", q.ID, "") || c.Answer("web", q.ID, "no") {
		t.Error("not the one answer to the question counts")
	}
	if _, out := c.again(t); fmt.Sprint(out.Moved) != "[web]" || c.force() != "1 true paused" || c.Asking("web") {
		t.Errorf("moved %v, in force %s", out.Moved, c.force())
	}
}

// A section that the module has something against is refused, as one that does not pass its schema.
func TestWhatIsAnsweredWithNoIsRefused(t *testing.T) {
	c := newConfig()
	q, _ := c.asked(t, "web=x: 1")
	c.Answer("web", q.ID, "")
	c.again(t)
	q, _ = c.asked(t, "web=x: 2", "webEnabled=true")
	c.Answer("web", q.ID, "x must stay")
	_, out := c.again(t)
	if want := "ConfigMap ns/starling: config web: x must stay"; c.force() != "1 true" || len(out.Problems) != 1 || out.Problems[0] != (values.ConfigProblem{Module: "web", Text: want, Outcome: values.Refused}) {
		t.Errorf("in force %s, problems %+v", c.force(), out.Problems)
	}
	if q, out := c.asked(t, "web=x: 2", "global=x: 1"); q.ID != "" || len(out.Problems) > 0 || len(c.Problems()["web"]) != 1 {
		t.Errorf("asked again %+v, problems %+v", q, out.Problems)
	}
	if !c.Again("web") || c.Again("web") {
		t.Error("it is not asked again, once")
	}
	if q, _ := c.again(t); q.ID == "" || c.Again("web") || !c.Answer("web", q.ID, "x must stay") {
		t.Errorf("asked again %+v", q)
	}
	c.again(t)
	if q, _ := c.asked(t, "web=x: 1"); q.ID != "" || len(c.Problems()) > 0 {
		t.Errorf("asked about what is in force: %+v, problems %v", q, c.Problems())
	}
	if q, _ := c.asked(t, "web=x: 2"); q.ID == "" { // after a while it may say something else
		t.Error("an old answer counts")
	}
}

// An answer comes too late when the user has gone on; one about nothing is none.
func TestALateAnswerCountsForNothing(t *testing.T) {
	c := newConfig()
	if c.Answer("web", "", "no") {
		t.Error("an answer without a question counts")
	}
	first, _ := c.asked(t, "web=x: 1")
	second, _ := c.asked(t, "web=x: 2")
	if second.ID == first.ID || c.Answer("web", first.ID, "no") || !c.Answer("web", second.ID, "") {
		t.Errorf("asked %+v, then %+v", first, second)
	}
	c.again(t)
	third, _ := c.asked(t) // the section is taken away: that is asked, too
	if third.New != nil || third.Old["x"] != int64(2) {
		t.Errorf("asked %+v", third)
	}
	c.asked(t, "web=x: 2")
	if c.Answer("web", third.ID, "") || c.Asking("web") || c.force() != "2" {
		t.Errorf("in force %s", c.force())
	}
}

// A section that does not pass its schemas is not asked about; another code is asked anew.
func TestOnlyWhatPassesIsAsked(t *testing.T) {
	c := newConfig()
	if q, _ := c.asked(t, "web=bad: true"); q.ID != "" || c.Asking("web") {
		t.Errorf("asked %+v", q)
	}
	q, _ := c.asked(t, "web=x: 1")
	c.Answer("web", q.ID, "no")
	c.again(t)
	all := sections()
	all[1].Asks = "other code"
	c.Anew()
	if _, questions := c.Apply(all); len(questions) != 1 {
		t.Errorf("questions %+v", questions)
	}
	all[1].Asks = ""
	c.Anew()
	_, questions := c.Apply(all)
	if c.Count(); len(questions) > 0 || c.Asking("web") || c.force() != "1" {
		t.Errorf("without code: questions %+v, in force %s", questions, c.force())
	}
}
