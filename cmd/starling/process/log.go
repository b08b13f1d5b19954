package process

import (
	"bytes"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"strings"
	"unicode"

	"github.com/go-logr/zerologr"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/starling-operator/starling/runtime/live"
)

// The forms of --log-format.
const (
	logJSON    = "json"
	logConsole = "console"
)

// LogFlags say what is logged, and how.
type LogFlags struct {
	level  string
	format string
}

// AddFlags declares --log-level and --log-format.
func (f *LogFlags) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.level, "log-level", "info", "least `level` that is logged: debug, info, warn or error; starling log-level changes it while starling runs")
	fs.StringVar(&f.format, "log-format", "", "`form` of the log: json, or console, lines for people (default: console on a terminal, else json)")
}

// Open starts the log, of which kept gets each line as JSON, and takes over what client-go and
// Helm log: their loggers are the process's, and so is the level, so this happens once. Told is for
// lines that a person at a terminal reads, and nobody keeps; nil: nobody is there.
func (f *LogFlags) Open(w, kept io.Writer) (log zerolog.Logger, told *zerolog.Logger, err error) {
	if _, err := SetLogLevel(f.level); err != nil {
		return log, nil, fmt.Errorf("--log-level: %w", err)
	}
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00" // whole seconds hide what took long
	terminal := IsTerminal(w)
	switch {
	case f.format == logConsole, f.format == "" && terminal:
		w = ConsoleWriter(w, terminal)
		if terminal {
			lines := zerolog.New(w).With().Timestamp().Logger()
			told = &lines
		}
	case f.format != "" && f.format != logJSON:
		return log, nil, fmt.Errorf("--log-format %q is not known; use json or console", f.format)
	}
	log = zerolog.New(zerolog.MultiLevelWriter(w, kept)).With().Timestamp().Logger()
	TameLibraries()
	quiet := log.With().Str("from", "client-go").Logger().Sample(forDebugging{})
	klog.SetLogger(onceLogger(zerologr.New(&quiet)))
	return log, told, nil
}

// ConsoleWriter makes lines for people of lines of JSON.
func ConsoleWriter(w io.Writer, terminal bool) io.Writer {
	return zerolog.ConsoleWriter{
		Out: w, TimeFormat: "15:04:05.000", NoColor: !terminal || os.Getenv("NO_COLOR") != "",
		FieldsExclude: []string{live.TraceField}, FormatExtra: printTrace, FormatPrepare: tidyMessage,
	}
}

// SetLogLevel sets the level of all loggers of the process, and returns what it was. An
// empty one changes nothing.
func SetLogLevel(level string) (was string, err error) {
	now := zerolog.GlobalLevel()
	if level == "" {
		return now.String(), nil
	}
	at, err := zerolog.ParseLevel(level)
	if err != nil || at < zerolog.DebugLevel || at > zerolog.ErrorLevel {
		return "", fmt.Errorf("level %q is not known; use debug, info, warn or error", level)
	}
	zerolog.SetGlobalLevel(at)
	return now.String(), nil
}

// forDebugging leaves out what client-go says below a warning, unless all is logged.
type forDebugging struct{}

// Sample says whether a line of that level is logged.
func (forDebugging) Sample(level zerolog.Level) bool {
	return level >= zerolog.WarnLevel || zerolog.GlobalLevel() <= zerolog.DebugLevel
}

// TameLibraries keeps Helm from warning through the standard logger, where it quotes values. The logger is the
// process's, so this happens once.
func TameLibraries() {
	stdlog.SetOutput(io.Discard)
}

// tidyMessage keeps what a hook says from looking like more than one line of the log, and
// from what else control characters do to a terminal: further lines are indented.
func tidyMessage(fields map[string]any) error {
	message, _ := fields[zerolog.MessageFieldName].(string)
	fields[zerolog.MessageFieldName] = strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return '\uFFFD'
		}
		return r
	}, strings.ReplaceAll(message, "\n", "\n      "))
	return nil
}

// printTrace puts the long form of an error below its line, indented.
func printTrace(fields map[string]any, out *bytes.Buffer) error {
	trace, _ := fields[live.TraceField].(string)
	for line := range strings.Lines(trace) {
		out.WriteString("\n      " + strings.TrimRight(line, "\n"))
	}
	return nil
}

// IsTerminal says whether what is read from, or written to, is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
