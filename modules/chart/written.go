package chart

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
)

// Written is an object that a template may render with some values, as far as its text tells.
type Written struct {
	// File is the template's path in the chart, Line where the text stands that cannot be told; else 0.
	File string
	Line int
	// APIVersion and Kind are "" when they cannot be told without values. Of a version that cannot be told in a
	// group that can, it is "policy/*".
	APIVersion, Kind string
	// Rendered says of one that cannot be told that the target's values render it.
	Rendered bool

	at site
}

// position is where an action stands in a template.
type position struct {
	file   string // as Helm names it
	offset int
}

// site is what renders to a text: the action of the file that is rendered, and the one of a template that it
// includes, or the same one.
type site struct{ outer, inner position }

// Written tells of all objects that the templates of a chart, and of its subcharts, on or off, may render. They are
// read, not only rendered: conditions may come to be true.
func (r *Renderer) Written(ctx context.Context, t Input, caps *helm.Capabilities) ([]Written, error) {
	if err := checkFiles(t.Chart.Files); err != nil {
		return nil, fmt.Errorf("chart %s: %w", t.Chart.Name, err)
	}
	j, err := newJob(jobWritten, t)
	if err != nil {
		return nil, err
	}
	j.Caps = caps
	out, err := r.do(ctx, j, nil)
	return out.Written, err
}

func writtenIn(t Input, ch *helm.Chart, caps *helm.Capabilities) ([]Written, error) {
	r := &templateReader{templates: map[string]chartTemplate{}, seen: map[Written]bool{}}
	if err := r.parse(ch); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.templates)) {
		if tmpl := r.templates[name]; tmpl.rendered() {
			r.read(tmpl)
		}
	}
	r.mark(t, caps)
	return r.out, nil
}

// mark finds out which of the objects that cannot be told are rendered: a text is put before what renders to them.
func (r *templateReader) mark(t Input, caps *helm.Capabilities) {
	ids := map[position]int{}
	for _, w := range r.out {
		if w.Kind == "" {
			ids[w.at.outer], ids[w.at.inner] = 0, 0
		}
	}
	if len(ids) == 0 {
		return
	}
	ch, err := Installable(t.Chart)
	if err != nil {
		return // none is: then all are told of
	}
	id := 0
	for _, c := range helm.All(ch) {
		for _, file := range c.Templates {
			var offsets []int
			name := c.ChartFullPath() + "/" + file.Name
			for p := range ids {
				if p.file == name {
					offsets = append(offsets, p.offset)
				}
			}
			slices.Sort(offsets)
			for _, offset := range slices.Backward(offsets) {
				at := bytes.LastIndex(file.Data[:offset], []byte("{{"))
				id++
				ids[position{name, offset}] = id
				file.Data = slices.Insert(slices.Clone(file.Data), at, []byte(fmt.Sprintf(`{{ "starlingmark%dz" }}`, id))...)
			}
		}
	}
	files, _, err := renderChart(t, ch, (&offlineLookups{target: t}).find, caps, false, 1)
	if err != nil {
		return
	}
	made := map[int]bool{}
	for _, text := range files {
		for _, at := range markBefore.FindAllStringSubmatchIndex(text, -1) {
			rest := text[at[1]:]
			if more := marksAndSpace.FindString(rest); !rendersNothing.MatchString(rest[len(more):]) {
				n, _ := strconv.Atoi(text[at[2]:at[3]])
				made[n] = true
			}
		}
	}
	for i, w := range r.out {
		r.out[i].Rendered = w.Kind == "" && made[ids[w.at.outer]] && made[ids[w.at.inner]]
	}
}

var (
	markBefore     = regexp.MustCompile(`starlingmark(\d+)z`)
	marksAndSpace  = regexp.MustCompile(`^(?:\s|starlingmark\d+z)*`)
	rendersNothing = regexp.MustCompile(`^(?:$|---|\{\}|\[\]|null\b|"")`)
)

// state is one way in which a template may have rendered so far: what of the document, and of its last line, matters.
type state struct {
	// plain: the lines are all that counts.
	plain bool
	// line is the last line as it is so far; of one that does not matter only that.
	line string
	// dented says that something of the document has been seen, at this indent; flow: it is written in braces.
	dented bool
	indent int
	flow   bool
	// items says that it is an item of a list, or that the items come next.
	items         bool
	version, kind string
	// hole is where a text comes from that cannot be told and stands in a place that matters; body says that it may
	// hold the whole object.
	hole  site
	body  bool
	place int // the line in the file
}

// unknown stands in texts for one that cannot be told.
const unknownText = "\x00"

var (
	objectLine = regexp.MustCompile(`^["']?(apiVersion|kind)["']?\s*:\s*(.*)$`)
	verb       = regexp.MustCompile(`%[svd]`)
	objectFlow = regexp.MustCompile(`["']?(apiVersion|kind)["']?\s*:\s*["']?([^\s"',{}\[\]]+)`)
)

// write adds a text that begins at a line of the file.
func (r *templateReader) write(s state, text string, at site, line int, moves bool) state {
	if s.plain {
		if s.line += text; len(s.line) > maxReadText {
			s.line = unknownText
		}
		return s
	}
	for {
		before, after, more := strings.Cut(text, "\n")
		if s.line += before; strings.Contains(before, unknownText) {
			s.hole, s.place = at, line
		}
		s.line = s.matters()
		if !more {
			return s
		}
		s = r.endLine(s)
		text = after
		if moves {
			line++
		}
	}
}

// matters is the last line, or a short one that means as little.
func (s state) matters() string {
	rest := strings.TrimLeft(s.line, " ")
	indent := len(s.line) - len(rest)
	switch {
	case rest == "":
		return s.line
	case s.flow || s.items && (rest[0] == '-' || rest[0] == 0):
	case s.dented && indent != s.indent && !strings.HasPrefix(s.line, "---"):
		return strings.Repeat(" ", s.indent+1) + "x"
	default:
		if !slices.ContainsFunc([]string{"apiVersion", `"apiVersion"`, "'apiVersion'", "kind", `"kind"`, "'kind'", "items", "---", "{", unknownText}, func(k string) bool {
			return strings.HasPrefix(k, rest) || strings.HasPrefix(rest, k)
		}) {
			return strings.Repeat(" ", indent) + "x"
		}
	}
	return s.line[:min(len(s.line), 512)]
}

// endLine takes in a whole line.
func (r *templateReader) endLine(s state) state {
	text := s.line
	s.line = ""
	rest := strings.TrimSpace(text)
	indent := len(text) - len(strings.TrimLeft(text, " "))
	switch {
	case rest == "" || rest[0] == '#':
		return s
	case strings.HasPrefix(text, "---"):
		r.emit(s)
		return state{}
	case s.items && rest[0] == '-' && (!s.dented || indent < s.indent || s.listed()): // the next item
		r.emit(s)
		within := strings.TrimLeft(rest[1:], " ")
		s = state{items: true, hole: s.hole, place: s.place}
		s.line = strings.Repeat(" ", indent+len(rest)-len(within)) + within
		return r.endLine(s)
	}
	if strings.Trim(rest, unknownText) == "" {
		if !s.dented || indent == s.indent || s.items {
			s.body = true
		}
		return s
	}
	if !s.dented {
		s.dented, s.indent, s.flow = true, indent, rest[0] == '{'
	}
	switch {
	case s.flow:
		for _, m := range objectFlow.FindAllStringSubmatch(rest, -1) {
			s = r.key(s, m[1], m[2])
		}
	case indent != s.indent:
	case strings.HasPrefix(rest, "items:"):
		s.items = s.listed()
		s.body = s.body || s.items && strings.Contains(rest, unknownText)
	default:
		if m := objectLine.FindStringSubmatch(rest); m != nil {
			value, _, _ := strings.Cut(m[2], " #")
			s = r.key(s, m[1], strings.Trim(value, ` "'`))
		}
	}
	return s
}

// listed says that the document is a list, whose items are the objects.
func (s state) listed() bool { return strings.HasSuffix(s.kind, "List") }

// key takes in a field of the object. A second one of a name begins another object.
func (r *templateReader) key(s state, name, value string) state {
	at := &s.kind
	if name == "apiVersion" {
		at = &s.version
	}
	if value == "" || *at != "" && s.flow { // the fields of objects within
		return s
	}
	if *at != "" && s.version != "" && s.kind != "" {
		r.emit(s)
		s.version, s.kind, s.body = "", "", false
	}
	*at = value
	return s
}

// emit notes the object of a document.
func (r *templateReader) emit(s state) {
	group, _, _ := strings.Cut(s.version, unknownText)
	w := Written{File: r.file.path, Line: s.place, APIVersion: s.version, Kind: s.kind, at: s.hole}
	switch {
	case s.listed() && s.items && !s.body:
		return
	case s.version != "" && s.kind != "" && !strings.Contains(s.version+s.kind, unknownText) && !(s.listed() && s.body):
		w.at, w.Line = site{}, 0
	case s.kind != "" && !strings.Contains(s.kind, unknownText) && strings.HasSuffix(group, "/") && !s.listed():
		w.APIVersion, w.at, w.Line = group+"*", site{}, 0
	case strings.Contains(s.version+s.kind, unknownText) || s.body && (s.version == "" || s.kind == "" || s.listed()):
		w.APIVersion, w.Kind = "", ""
	default:
		return // no object
	}
	if !r.seen[w] {
		r.seen[w] = true
		r.out = append(r.out, w)
	}
}

// nameOf is a template's path in the chart.
func nameOf(full string) string {
	_, in, _ := strings.Cut(full, "/")
	return path.Clean(in)
}
