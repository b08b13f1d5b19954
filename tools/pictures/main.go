// Command pictures makes the pictures of docs/pictures from the texts beside them: of concepts.txt a drawing
// of the way of an event, of each other text a terminal that shows it. A picture is an SVG file, light or dark
// as its reader wants it, and needs no font and no file from elsewhere.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("dir", ".", "top `folder` of the project")
	flag.Parse()
	texts, err := filepath.Glob(filepath.Join(*dir, "docs/pictures/*.txt"))
	if err == nil && len(texts) == 0 {
		err = fmt.Errorf("there is no docs/pictures/*.txt in %s", *dir)
	}
	for _, text := range texts {
		var svg string
		if svg, err = draw(text); err == nil {
			err = os.WriteFile(pictureOf(text), []byte(svg), 0o644)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// pictureOf is the file of the picture that a text makes.
func pictureOf(text string) string { return strings.TrimSuffix(text, ".txt") + ".svg" }

// draw makes the picture of a text.
func draw(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if filepath.Base(file) != "concepts.txt" {
		return terminal(string(text)), nil
	}
	f, err := parseFlow(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return f.svg(), nil
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
