package lsp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-operator/starling/lsp/text"
)

// A rename is refused where its edits would be wrong or too few: in a file that has changed on the disk since the last
// check, and in one that names the name and cannot be read, open or not.
func TestRenameOfFilesThatAreNotAsTheyWere(t *testing.T) {
	const broken = "load(\"//lib/names.star\", \"ready\")\nx = (\n"
	for name, c := range map[string]struct {
		file, src string
		opened    bool
		want      string
	}{
		"changed":              {file: "lib/names.star", src: "# one line more\ndef ready(n):\n    return n\n", want: "lib/names.star has changed on the disk"},
		"gone":                 {file: "lib/names.star", want: "lib/names.star has changed on the disk"},
		"broken, open":         {file: "web/hooks/more.star", src: broken, opened: true, want: "web/hooks/more.star has a mistake"},
		"broken, not open":     {file: "web/hooks/more.star", src: broken, want: "web/hooks/more.star has a mistake"},
		"broken, without name": {file: "web/hooks/more.star", src: "x = (\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := addons(t)
			path := filepath.Join(dir, c.file)
			if !c.opened && c.file != "lib/names.star" {
				writeFile(t, path, c.src)
			}
			client := begin(t, dir)
			uri := client.openFile(filepath.Join(dir, "web/hooks/count.star"))
			client.diagnostics(uri)
			switch {
			case c.opened:
				client.diagnostics(client.edit(path, c.src))
			case c.file == "lib/names.star" && c.src == "":
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			case c.file == "lib/names.star":
				writeFile(t, path, c.src)
			}
			err := client.try("textDocument/rename", map[string]any{"textDocument": documentID{uri}, "position": text.Position{Character: 28}, "newName": "is_up"}, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			client.end()
		})
	}
}

func writeFile(t *testing.T, path, src string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
}
