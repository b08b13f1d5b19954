package live

import (
	"errors"
	"strings"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/script"
)

// hookLog writes the log lines of one hook, or of a whole module.
type hookLog struct {
	log zerolog.Logger
	// budget bounds them; nil: nothing does.
	budget *logBudget
}

// hookLog is the log for what hooks say themselves, which is bounded for each module.
func (d *Driver) hookLog(module, hook string) builtins.Logger {
	return hookLog{d.log(module, hook).(hookLog).log, d.metrics.logs.of(module, d.o.Log)}
}

// log is the log for what Starling says of a hook, or of a whole module.
func (d *Driver) log(module, hook string) builtins.Logger { return Logger(d.o.Log, module, hook) }

// Logger writes what is said of a hook, or with hook "" of a whole module.
func Logger(log zerolog.Logger, module, hook string) builtins.Logger {
	c := log.With()
	if module != "" {
		c = c.Str("module", module)
	}
	if hook != "" {
		c = c.Str("hook", hook)
	}
	return hookLog{log: c.Logger()}
}

// FileLog returns the logger of files that load, by their path.
func FileLog(log zerolog.Logger) func(path string) builtins.Logger {
	return func(path string) builtins.Logger { return hookLog{log: log.With().Str("file", path).Logger()} }
}

// Log writes one line.
func (l hookLog) Log(level builtins.Level, msg string, fields []builtins.Field) {
	at := [...]zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel, zerolog.WarnLevel, zerolog.ErrorLevel}[level]
	if at < max(l.log.GetLevel(), zerolog.GlobalLevel()) || l.budget != nil && !l.budget.spend(msg, fields) {
		return
	}
	line := l.log.WithLevel(at)
	for _, f := range fields {
		line = line.Interface(f.Key, f.Value)
	}
	line.Msg(msg)
}

// TraceField is the log field of the long form of an error in a .star file: source
// line, caret and frames, in several lines.
const TraceField = "trace"

// traceOf returns the long form of every error in a .star file that err holds.
func traceOf(err error) string {
	switch e := err.(type) {
	case nil:
		return ""
	case *script.Error:
		return e.Render()
	case interface{ Unwrap() []error }:
		var all []string
		for _, err := range e.Unwrap() {
			if trace := traceOf(err); trace != "" {
				all = append(all, trace)
			}
		}
		return strings.Join(all, "\n")
	}
	return traceOf(errors.Unwrap(err))
}
