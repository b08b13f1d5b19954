package main

import (
	"fmt"
	"slices"
	"strings"
)

// flow is the picture of the way of an event: steps in a row, arrows between them and the cluster, and below
// them, for each person, bars with what this person may do.
type flow struct {
	title, cluster string
	steps          []step
	who            []person
}

type step struct{ name, text, from, to string }

type person struct {
	name string
	bars []span
}

// span is a bar below some steps.
type span struct {
	first, last int
	text        string
}

func parseFlow(text string) (*flow, error) {
	f := &flow{}
	for n, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, ok := strings.Cut(line, ": ")
		word, name, _ := strings.Cut(head, " ")
		at := slices.IndexFunc(f.steps, func(s step) bool { return s.name == name })
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d: want a word, a colon and a text", n+1)
		case word == "title":
			f.title = rest
		case word == "cluster":
			f.cluster = rest
		case word == "step" && name != "" && at < 0:
			f.steps = append(f.steps, step{name: name, text: rest})
		case word == "from" && at >= 0:
			f.steps[at].from = rest
		case word == "to" && at >= 0:
			f.steps[at].to = rest
		case word == "who":
			if err := f.addBar(name, rest); err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
		default:
			return nil, fmt.Errorf("line %d: %q is no step, or no word of this file", n+1, head)
		}
	}
	return f, nil
}

func (f *flow) addBar(head, text string) error {
	name, place, _ := strings.Cut(head, " / ")
	first, last, more := strings.Cut(place, "-")
	if !more {
		last = first
	}
	at := func(name string) int { return slices.IndexFunc(f.steps, func(s step) bool { return s.name == name }) }
	bar := span{at(first), at(last), text}
	if bar.first < 0 || bar.last < bar.first {
		return fmt.Errorf("%q are no steps in their order", place)
	}
	if i := slices.IndexFunc(f.who, func(p person) bool { return p.name == name }); i >= 0 {
		f.who[i].bars = append(f.who[i].bars, bar)
	} else {
		f.who = append(f.who, person{name, []span{bar}})
	}
	return nil
}

const (
	boxWidth   = 132
	boxGap     = 22
	boxTop     = 120
	boxHeight  = 134
	flowMargin = 16
	rowTop     = 288
	rowHeight  = 96
	textWidth  = 7.7 // of a letter of 14 px, as wide as they are in common fonts
)

func (f *flow) svg() string {
	width := 2*flowMargin + len(f.steps)*boxWidth + (len(f.steps)-1)*boxGap
	height := rowTop + len(f.who)*rowHeight + flowMargin - 8
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">
<style>
.page { fill: #ffffff; } .box { fill: #ddf4ff; stroke: #0969da; } .band { fill: #f6f8fa; stroke: #818b98; } .bar { fill: #fff8c5; stroke: #9a6700; }
.arrow { stroke: #59636e; fill: none; stroke-width: 1.5; } .head { fill: #59636e; } .line { stroke: #d0d7de; }
text { font: 14px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; fill: #1f2328; }
.name { font-weight: 600; font-size: 17px; } .title { font-weight: 600; } .small { font-size: 12.5px; fill: #59636e; }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; } .box { fill: #121d2f; stroke: #4493f8; } .band { fill: #151b23; stroke: #656c76; } .bar { fill: #2a2211; stroke: #9e6a03; }
.arrow { stroke: #9198a1; } .head { fill: #9198a1; } .line { stroke: #3d444d; } text { fill: #e6edf3; } .small { fill: #9198a1; }
}
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>
<rect class="page" width="%d" height="%d" rx="8"/>
`, width, height, width, height, escape.Replace(f.title), width, height)
	fmt.Fprintf(&b, `<rect class="band" x="%d" y="%d" width="%d" height="40" rx="6"/>`+"\n", flowMargin, flowMargin, width-2*flowMargin)
	center(&b, "title", width/2, flowMargin+24, f.cluster)
	for i, s := range f.steps {
		x, middle := left(i), left(i)+boxWidth/2
		if s.from != "" {
			fmt.Fprintf(&b, `<path class="arrow" d="M%d %dV%d" marker-end="url(#head)"/>`+"\n", middle, flowMargin+41, boxTop-2)
		}
		if s.to != "" {
			fmt.Fprintf(&b, `<path class="arrow" d="M%d %dV%d" marker-end="url(#head)"/>`+"\n", middle, boxTop, flowMargin+42)
		}
		if label := s.from + s.to; label != "" {
			for n, line := range wrapped(label, 60) {
				fmt.Fprintf(&b, `<text class="small" x="%d" y="%d">%s</text>`+"\n", middle+7, flowMargin+56+n*14, escape.Replace(line))
			}
		}
		if i > 0 {
			fmt.Fprintf(&b, `<path class="arrow" d="M%d %dH%d" marker-end="url(#head)"/>`+"\n", x-boxGap+1, boxTop+boxHeight/2, x-2)
		}
		fmt.Fprintf(&b, `<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", x, boxTop, boxWidth, boxHeight)
		fmt.Fprintf(&b, `<text class="name" x="%d" y="%d">%d  %s</text>`+"\n", x+10, boxTop+24, i+1, escape.Replace(s.name))
		for n, line := range wrapped(s.text, boxWidth-18) {
			fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", x+10, boxTop+46+n*18, escape.Replace(line))
		}
	}
	for i, p := range f.who {
		top := rowTop + i*rowHeight
		fmt.Fprintf(&b, `<path class="line" d="M%d %dH%d"/>`+"\n", flowMargin, top-10, width-flowMargin)
		fmt.Fprintf(&b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", flowMargin, top+8, escape.Replace(p.name))
		for _, bar := range p.bars {
			x, w := left(bar.first), left(bar.last)+boxWidth-left(bar.first)
			fmt.Fprintf(&b, `<rect class="bar" x="%d" y="%d" width="%d" height="58" rx="4"/>`+"\n", x, top+16, w)
			lines := wrapped(bar.text, float64(w-14))
			for n, line := range lines {
				center(&b, "", x+w/2, top+50+n*17-(len(lines)-1)*8, line)
			}
		}
	}
	return b.String() + "</svg>\n"
}

// left is the left edge of a step.
func left(i int) int { return flowMargin + i*(boxWidth+boxGap) }

func center(b *strings.Builder, class string, x, y int, text string) {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	fmt.Fprintf(b, `<text%s x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", class, x, y, escape.Replace(text))
}

// wrapped breaks a text into lines of at most so many pixels.
func wrapped(text string, width float64) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case float64(len(line)+1+len(word))*textWidth > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
