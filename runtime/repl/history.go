package repl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// History is what was typed in earlier sessions, in a file with one JSON text a line
// that only its owner can read. A line that may hold a secret is left out. A file that cannot
// be read or written is no error: then there is no history but this session's.
type History struct {
	// Quiet says that what comes next is a line of :apply -, with data of objects; nil: nothing is.
	Quiet func() bool
	path  string
	texts []string
}

const (
	// maxHistory is how many texts are kept, the last ones.
	maxHistory = 2000
	// maxHistoryFile is how much of the file is read.
	maxHistoryFile = 8 << 20
	// maxHistoryText is the longest text that is kept.
	maxHistoryText = 8 << 10
)

// HistoryFile is where the history lies: below $XDG_STATE_HOME, or ~/.local/state; ""
// if there is no such folder.
func HistoryFile(getenv func(string) string) string {
	dir := getenv("XDG_STATE_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "starling", "repl_history")
}

// OpenHistory reads the file; path "" keeps nothing beyond the session.
func OpenHistory(path string) *History {
	h := &History{path: path}
	f, err := os.Open(path)
	if err != nil {
		return h
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxHistoryFile {
		if _, err := f.Seek(-maxHistoryFile, io.SeekEnd); err != nil {
			return h
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxHistoryFile))
	if err != nil {
		return h
	}
	lines := 0
	for line := range bytes.Lines(data) {
		lines++
		var text string
		if json.Unmarshal(line, &text) == nil && text != "" && len(text) <= maxHistoryText {
			h.texts = append(h.texts, text)
		}
	}
	h.texts = h.texts[max(0, len(h.texts)-maxHistory):]
	if lines > 2*maxHistory || len(data) == maxHistoryFile {
		h.rewrite()
	}
	return h
}

// Write adds a text, and returns how many there are. A line that mentions a secret, and lines of :apply -, stay out
// of the file, and so does what is there already as the last one.
func (h *History) Write(text string) (int, error) {
	text = strings.TrimRight(text, "\n ")
	if text == "" || len(text) > maxHistoryText || len(h.texts) > 0 && h.texts[len(h.texts)-1] == text {
		return len(h.texts), nil
	}
	h.texts = append(h.texts, text)
	h.texts = h.texts[max(0, len(h.texts)-maxHistory):]
	if h.path != "" && !private(text) && (h.Quiet == nil || !h.Quiet()) {
		h.append(text)
	}
	return len(h.texts), nil
}

// private reports whether a text may hold a secret.
func private(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"reveal(", "secret", "password", "passwd", "token", "private key", ":apply -"}, func(word string) bool {
		return strings.Contains(text, word)
	})
}

// append writes at the end of the file, which other sessions may do, too. Whatever goes
// wrong, the session goes on.
func (h *History) append(text string) {
	if os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if data, err := json.Marshal(text); err == nil {
		_, _ = f.Write(append(data, '\n'))
	}
}

// rewrite cuts a file that has grown long down to what counts.
func (h *History) rewrite() {
	var b bytes.Buffer
	for _, text := range h.texts {
		if data, err := json.Marshal(text); err == nil {
			b.Write(append(data, '\n'))
		}
	}
	next := fmt.Sprintf("%s.%d", h.path, os.Getpid())
	if os.WriteFile(next, b.Bytes(), 0o600) != nil || os.Rename(next, h.path) != nil {
		_ = os.Remove(next)
	}
}

// GetLine returns a text, from 0, the oldest first.
func (h *History) GetLine(i int) (string, error) {
	if i < 0 || i >= len(h.texts) {
		return "", errors.New("there is no such line")
	}
	return h.texts[i], nil
}

// Len is how many texts there are.
func (h *History) Len() int { return len(h.texts) }

func (h *History) Dump() any { return h.texts }
