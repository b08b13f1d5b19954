package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	columnWidth = 7.8 // of a letter of 13 px
	lineHeight  = 18
	border      = 16
	bar         = 30 // with three dots
	mostLines   = 24 // the rest is in the text
)

// terminal draws a window with a text: a line that begins with "$ " is a command, and lines of plans and
// tables have the colours that the commands give them.
func terminal(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > mostLines {
		lines = append(lines[:mostLines-1:mostLines-1], "…")
	}
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(line))
	}
	width, height := int(float64(columns)*columnWidth)+2*border, bar+len(lines)*lineHeight+border
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
.back { fill: #f6f8fa; stroke: #d0d7de; } .dot { fill: #d0d7de; }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; white-space: pre; }
.add { fill: #116329; } .change { fill: #7d4e00; } .remove { fill: #a40e26; } .dim { fill: #59636e; } .bold { font-weight: bold; }
@media (prefers-color-scheme: dark) {
.back { fill: #151b23; stroke: #3d444d; } .dot { fill: #3d444d; } text { fill: #e6edf3; }
.add { fill: #7ee787; } .change { fill: #e3b341; } .remove { fill: #ff9492; } .dim { fill: #9198a1; }
}
</style>
<rect class="back" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
`, width, height, width, height, escape.Replace(strings.TrimPrefix(lines[0], "$ ")), width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle class="dot" cx="%d" cy="16" r="5"/>`+"\n", border+4+i*16)
	}
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">%s</text>`+"\n", border, bar+13+i*lineHeight, coloured(line))
		}
	}
	return b.String() + "</svg>\n"
}

// states have a colour in tables.
var states = map[string]string{
	"ready": "add", "ok": "add", "failed": "remove", "broken": "remove", "off": "dim", "paused": "dim",
	"waiting": "change", "starting": "change", "blocked": "change", "releasing": "change", "uninstalling": "change",
}

func coloured(line string) string {
	span := func(class, text string) string {
		return fmt.Sprintf(`<tspan class="%s">%s</tspan>`, class, escape.Replace(text))
	}
	if strings.HasPrefix(line, "$ ") {
		return span("dim", "$ ") + span("bold", line[2:])
	}
	sign := map[byte]string{'+': "add", '~': "change", '-': "remove", '!': "remove"}
	if trimmed := strings.TrimLeft(line, " "); trimmed != "" && sign[trimmed[0]] != "" && (len(trimmed) == 1 || trimmed[1] == ' ') {
		if i := strings.Index(line, "  # "); i > 0 {
			return span(sign[trimmed[0]], line[:i]) + span("dim", line[i:])
		}
		return span(sign[trimmed[0]], line)
	}
	if words := strings.Fields(line); len(words) > 1 && states[words[1]] != "" {
		before, after, _ := strings.Cut(line, " "+words[1]+" ")
		return escape.Replace(before+" ") + span(states[words[1]], words[1]) + escape.Replace(" "+after)
	}
	return escape.Replace(line)
}
