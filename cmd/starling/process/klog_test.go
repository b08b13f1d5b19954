package process

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
)

func TestClientGoRepeatsItselfOnce(t *testing.T) {
	var out bytes.Buffer
	log := zerolog.New(&out)
	l := onceLogger(zerologr.New(&log))
	for range 3 {
		l.WithValues("a", 1).Error(errors.New("forbidden"), "Error retrieving lease lock")
		l.WithName("x").Error(errors.New("timeout"), "Error retrieving lease lock")
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, out.String())
	}
}

// An API server that cuts the connection is told once, by the one who has asked it.
func TestErrorsThatAreReturnedAreForDebugging(t *testing.T) {
	var out bytes.Buffer
	log := zerolog.New(&out).Level(zerolog.DebugLevel)
	quiet := log.Sample(forDebugging{})
	before := zerolog.GlobalLevel()
	defer zerolog.SetGlobalLevel(before)
	for _, c := range []struct {
		level zerolog.Level
		lines int
	}{{zerolog.InfoLevel, 0}, {zerolog.DebugLevel, 1}} {
		zerolog.SetGlobalLevel(c.level)
		onceLogger(zerologr.New(&quiet)).Error(errors.New("unexpected EOF"), isReturned)
		if n := strings.Count(out.String(), "\n"); n != c.lines {
			t.Errorf("level %s: %d lines, want %d: %s", c.level, n, c.lines, out.String())
		}
	}
}

func TestSeenLinesAreForgotten(t *testing.T) {
	s := &seenLines{at: map[string]time.Time{}}
	now := time.Now()
	if s.again("a", now) || !s.again("a", now.Add(repeatAfter)) || s.again("a", now.Add(2*repeatAfter+1)) {
		t.Error("a line is logged once in repeatAfter")
	}
	s.again("b", now.Add(9*repeatAfter))
	if len(s.at) != 1 {
		t.Errorf("%d lines are kept, want 1", len(s.at))
	}
}
