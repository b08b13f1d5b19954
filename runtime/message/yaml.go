package message

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// yamlLine is an error of the YAML parser that names another line than the one to edit.
var yamlLine = regexp.MustCompile(`line (\d+): ((?:did|could) not find expected (?:key|'-' indicator|':'))`)

// YAML makes the line right that the parser names in what it says of a document. It counts lines from 0 where it finds
// another key than it expects, and names a line behind the one that has no colon.
func YAML(text string, doc []byte) string {
	return yamlLine.ReplaceAllStringFunc(text, func(all string) string {
		m := yamlLine.FindStringSubmatch(all)
		line, _ := strconv.Atoi(m[1])
		if strings.HasSuffix(m[2], "':'") {
			lines := bytes.Split(doc, []byte("\n"))
			for line--; line > 1 && (line > len(lines) || blank(lines[line-1])); {
				line--
			}
		} else {
			line++
		}
		return "line " + strconv.Itoa(line) + ": " + m[2]
	})
}

func blank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}
