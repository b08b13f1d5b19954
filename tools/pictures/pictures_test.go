package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures are those of their texts. That the texts are what commands print, TestPictures in e2e/ holds.
func TestPicturesAreMadeOfTheirTexts(t *testing.T) {
	texts, err := filepath.Glob("../../docs/pictures/*.txt")
	if err != nil || len(texts) < 3 {
		t.Fatal(texts, err)
	}
	for _, text := range texts {
		want, err := draw(text)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := os.ReadFile(pictureOf(text))
		if err != nil || string(got) != want {
			t.Errorf("%s is not made of its text (%v); run: make pictures", pictureOf(text), err)
		}
		if strings.Contains(want, "href") || strings.Contains(want, "url(http") {
			t.Errorf("%s takes something from elsewhere", pictureOf(text))
		}
	}
}

func TestMistakesInAFlowHaveTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"step a: x\nfrom b: y":    "line 2",
		"no colon":                "line 1",
		"step a: x\nstep a: y":    "line 2",
		"step a: x\nwho A / b: y": "line 2",
	} {
		if _, err := parseFlow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", text, want, err)
		}
	}
}
