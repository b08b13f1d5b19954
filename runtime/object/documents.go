package object

import (
	"regexp"
	"strings"
)

var separator = regexp.MustCompile(`(?:^|\s*\n)---\s*`)

// Documents splits a text of many YAML documents, as Helm does. Space around them is gone.
func Documents(text string) (docs []string) {
	for _, doc := range separator.Split(strings.TrimSpace(text), -1) {
		if doc != "" {
			docs = append(docs, strings.TrimSpace(doc))
		}
	}
	return docs
}
