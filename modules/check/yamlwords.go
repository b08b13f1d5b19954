package check

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/object"
)

var boolWord = regexp.MustCompile(`(?m)^[ \t]*(?:- +)?(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF):(?:\s|$)`)

// boolKey tells of a key that YAML reads as true or false, though a person has written a word: on, off, y, n.
func (c *checker) boolKey(check string, m *generation.Module, file string, data []byte, read any) {
	if !hasBoolKey(read) {
		return
	}
	at := boolWord.FindSubmatchIndex(data)
	if at == nil {
		return
	}
	key, is := string(data[at[2]:at[3]]), "false"
	if c := key[0] | 0x20; c == 'y' || strings.EqualFold(key, "on") {
		is = "true"
	}
	c.add(Finding{
		Severity: Warning, Check: check, Module: m.Name, File: file, Line: 1 + bytes.Count(data[:at[2]], []byte("\n")),
		Message: fmt.Sprintf("YAML reads the key %s as %s", key, is), Hint: fmt.Sprintf("put it in quotes: %q:", key),
	})
}

// hasBoolKey says whether a map in v has the key "true" or "false", as YAML makes it of words.
func hasBoolKey(v any) bool {
	for e := range object.All(v) {
		m, _ := e.(map[string]any)
		for _, word := range []string{"true", "false"} {
			if _, has := m[word]; has {
				return true
			}
		}
	}
	return false
}
