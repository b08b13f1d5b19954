package process

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// repeatAfter is how long a line of client-go that was logged is not logged again.
// Its loops say the same every two seconds for as long as something is wrong.
const repeatAfter = 5 * time.Minute

// isReturned is a line of client-go about an error that its caller gets, too, and tells in other words: an API server
// that cuts the connection in the middle of an answer.
const isReturned = "Unexpected error when reading response body"

// onceSink passes a line on unless the same was logged a moment ago.
type onceSink struct {
	logr.LogSink
	seen *seenLines
}

// seenLines are the lines that were logged lately.
type seenLines struct {
	mu   sync.Mutex
	at   map[string]time.Time
	last time.Time // when old ones were dropped
}

func (s *seenLines) again(line string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) > repeatAfter {
		s.last = now
		for line, at := range s.at {
			if now.Sub(at) > repeatAfter {
				delete(s.at, line)
			}
		}
	}
	at, seen := s.at[line]
	if seen && now.Sub(at) <= repeatAfter {
		return true
	}
	s.at[line] = now
	return false
}

func onceLogger(l logr.Logger) logr.Logger {
	return l.WithSink(onceSink{l.GetSink(), &seenLines{at: map[string]time.Time{}}})
}

// Error logs an error; one that is returned, too, is for debugging.
func (s onceSink) Error(err error, msg string, keysAndValues ...any) {
	if msg == isReturned {
		s.Info(1, msg, append(keysAndValues, "error", err)...)
		return
	}
	line := msg
	if err != nil {
		line += ": " + err.Error()
	}
	if !s.seen.again(line, time.Now()) {
		s.LogSink.Error(err, msg, keysAndValues...)
	}
}

// WithValues returns a sink with more fields.
func (s onceSink) WithValues(keysAndValues ...any) logr.LogSink {
	return onceSink{s.LogSink.WithValues(keysAndValues...), s.seen}
}

// WithName returns a sink with one more name.
func (s onceSink) WithName(name string) logr.LogSink {
	return onceSink{s.LogSink.WithName(name), s.seen}
}
