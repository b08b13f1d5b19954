package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// configText returns the text that a hook of a module prints for --config, as far as it stands in
// the file as it is: in a here-document of a shell, or in a text in quotes. Nothing is run. line is where it
// begins. The error says why there is none, for the report.
func configText(source []byte, module string) (text string, line int, err error) {
	switch {
	case len(source) > maxSource:
		return "", 0, fmt.Errorf("it is larger than %d KiB", maxSource>>10)
	case bytes.HasPrefix(source, []byte("\x7fELF")) || !utf8.Valid(source):
		return "", 0, errors.New("it is a binary: run it with --config, and write hook(…) by hand")
	}
	// The one thing that many hooks compute is a queue with the name of their module.
	src := strings.NewReplacer("\r\n", "\n", "$(module::name::kebab_case)", module).Replace(string(source))
	var found []candidate
	for _, c := range append(hereDocuments(src), quotedTexts(src)...) {
		if looksLikeConfig(c.text) {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 0:
		return "", 0, errors.New("no text with configVersion stands in it: its config is computed; run it with --config, and write hook(…) by hand")
	case len(found) > 1:
		return "", 0, fmt.Errorf("%d texts with configVersion stand in it, at lines %d and %d: which one counts is decided as it runs", len(found), found[0].line, found[1].line)
	case found[0].computed != "":
		return "", 0, fmt.Errorf("line %d: its config is computed: it holds %s", found[0].line, found[0].computed)
	}
	return found[0].text, found[0].begins, nil
}

// maxSource is the largest hook that is looked at.
const maxSource = 256 << 10

// candidate is a text of a source file that may be a config.
type candidate struct {
	text   string
	line   int // of the call
	begins int // the line of the text
	// computed is what the program would replace in it; "" for a text that stays as it is.
	computed string
}

var configVersion = regexp.MustCompile(`(?m)(^[\s{,]*["']?|[{,]\s*")configVersion["']?\s*:`)

func looksLikeConfig(text string) bool { return configVersion.MatchString(text) }

var hereStart = regexp.MustCompile(`<<([-~]?)[ \t]*(?:'(\w+)'|"(\w+)"|\\?(\w+))`)

// hereDocuments returns the here-documents of a shell script.
func hereDocuments(src string) []candidate {
	var out []candidate
	lines := strings.Split(src, "\n")
	for i := 0; i < len(lines); i++ {
		m := hereStart.FindStringSubmatch(lines[i])
		if m == nil || strings.HasPrefix(strings.TrimSpace(lines[i]), "#") {
			continue
		}
		end := m[2] + m[3] + m[4]
		quoted := m[4] == "" || strings.Contains(m[0], `\`)
		var body []string
		for j := i + 1; j < len(lines); j++ {
			line := lines[j]
			if m[1] == "-" {
				line = strings.TrimLeft(line, "\t")
			}
			if line == end || m[1] == "~" && strings.TrimSpace(line) == end {
				c := candidate{text: strings.Join(body, "\n"), line: i + 1, begins: i + 2}
				if !quoted {
					c.text, c.computed = expandShell(c.text)
				}
				out = append(out, c)
				i = j
				break
			}
			body = append(body, line)
		}
	}
	return out
}

var shellSyntax = regexp.MustCompile("^(?:\\$(?:\\w+|[{(][^})]*[})]?|[@*#?!$-])|`[^`]*`?)")

// expandShell does what a shell does with a text in which it replaces: it takes \ off before
// $, ` and \. The second result is the first thing that it would compute.
func expandShell(text string) (plain, computed string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case '$', '`', '\\':
				i++
			case '\n': // the line goes on
				i++
				continue
			}
			b.WriteByte(text[i])
			continue
		}
		if computed == "" && (text[i] == '$' || text[i] == '`') {
			computed = shellSyntax.FindString(text[i:])
		}
		b.WriteByte(text[i])
	}
	return b.String(), computed
}

var pythonText = regexp.MustCompile(`(?s)([A-Za-z]{0,2})("""(.*?)"""|'''(.*?)''')`)

// quotedTexts returns texts of Python in three quotes, and those that a shell prints.
func quotedTexts(src string) []candidate {
	var out []candidate
	rest := []byte(src)
	for _, at := range pythonText.FindAllStringSubmatchIndex(src, -1) {
		c := candidate{line: 1 + strings.Count(src[:at[0]], "\n")}
		c.begins = c.line
		body := 6
		if at[body] < 0 {
			body = 8
		}
		c.text = src[at[body]:at[body+1]]
		prefix := strings.ToLower(src[at[2]:at[3]])
		switch {
		case strings.Contains(prefix, "f"):
			c.computed = "values of an f-string"
		case strings.Contains(c.text, `\`) && !strings.Contains(prefix, "r"):
			c.computed = "escapes"
		}
		out = append(out, c)
		for i := at[0]; i < at[1]; i++ { // they are looked at no more, lines stay
			if rest[i] != '\n' {
				rest[i] = ' '
			}
		}
	}
	return append(out, shellTexts(string(rest))...)
}

var printed = regexp.MustCompile(`(?m)(?:echo|printf|print)(?:[ \t]+-\w+|[ \t]+"?%s"?)*[ \t(]+'([^']*)'`)

var printedDouble = regexp.MustCompile(`(?m)(?:echo|print)(?:[ \t]+-\w+)*[ \t(]+"((?:[^"\\]|\\[\s\S])*)"`)

// shellTexts returns what a shell prints: echo 'configVersion: v1'. In double quotes it replaces
// as in a here-document.
func shellTexts(src string) []candidate {
	var out []candidate
	for _, at := range printed.FindAllStringSubmatchIndex(src, -1) {
		line := 1 + strings.Count(src[:at[0]], "\n")
		out = append(out, candidate{text: src[at[2]:at[3]], line: line, begins: line})
	}
	for _, at := range printedDouble.FindAllStringSubmatchIndex(src, -1) {
		line := 1 + strings.Count(src[:at[0]], "\n")
		c := candidate{line: line, begins: line}
		c.text, c.computed = expandShell(strings.ReplaceAll(src[at[2]:at[3]], `\"`, `"`))
		out = append(out, c)
	}
	return out
}
