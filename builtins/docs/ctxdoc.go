package docs

import (
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

// within are the fields below a path that one callback has.
func within(fields []CtxField, path, callback string) []CtxField {
	return slices.DeleteFunc(slices.Clone(fields), func(f CtxField) bool {
		return !strings.HasPrefix(f.Path, path) || !slices.Contains(f.In, callback)
	})
}

// hooks says whether it is a field of the ctx of a hook.
func (f *CtxField) hooks() bool { return CallbackOf(f.In[0]).Hook() }

// where says in which ctx the field is.
func (f *CtxField) where() string {
	var all []string
	for _, c := range Callbacks() {
		if c.Ctx() && c.Hook() == f.hooks() {
			all = append(all, c.Name)
		}
	}
	switch {
	case slices.Equal(all, f.In) && f.hooks():
		return "In every hook."
	case slices.Equal(all, f.In):
		return "In the functions of a controller."
	}
	return "In " + strings.Join(f.In, ", ") + "."
}

// ctxHelp tells about ctx, or a field of it. "ctx.events.type" is "ctx.events[].type".
func ctxHelp(name string) (string, bool) {
	if name == "ctx" {
		return ctxOverview(), true
	}
	var parts []string
	seen := ""
	for _, f := range CtxFields() {
		if plainPath(f.Path) != plainPath(name) || f.Path+f.Doc == seen {
			continue
		}
		seen = f.Path + f.Doc
		text := f.Path + ": " + f.Type + "\n\n" + message.Paragraph(f.Doc+" "+f.where())
		if f.Example != "" {
			text += "\nFor example " + f.Example
		}
		var rows [][2]string
		for _, below := range CtxFieldsOf(f.In[0]) {
			if _, is := strings.CutPrefix(plainPath(below.Path), plainPath(f.Path)+"."); is {
				rows = append(rows, [2]string{below.Path, below.Type + ": " + FirstSentence(below.Doc)})
			}
		}
		if name == "ctx.request" {
			rows = append(rows, [2]string{"", ""})
			for _, below := range within(CtxFieldsOf(onReceive), "ctx.request.", onReceive) {
				rows = append(rows, [2]string{below.Path, below.Type + ": " + FirstSentence(below.Doc)})
			}
		}
		if len(rows) > 0 {
			text += "\n\n" + message.Rows(rows)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n\n"), len(parts) > 0
}

// plainPath is a path without what says that it is one of a list.
func plainPath(path string) string { return strings.ReplaceAll(path, "[]", "") }

func ctxOverview() string {
	rows := func(fields []CtxField) string {
		var out [][2]string
		for _, f := range fields {
			out = append(out, [2]string{f.Path, f.Type + ": " + FirstSentence(f.Doc)})
		}
		return message.Rows(out)
	}
	return "ctx is what a hook is called with. It has\n\n" + rows(CtxMembers("", "ctx")) +
		"\n\nThe ctx of a controller's functions has\n\n" + rows(CtxMembers("controller(desired)", "ctx")) +
		"\n\nhelp(\"ctx.events\") tells more about one field."
}
