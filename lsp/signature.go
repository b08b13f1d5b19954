package lsp

import (
	"strings"
	"unicode/utf16"

	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/builtins/spec"
)

// signatureHelp shows the parameters of the call that is being written.
func (s *Server) signatureHelp(p positionParams) (*signatureHelp, error) {
	d, offset, err := s.at(p)
	if err != nil || !d.starlark() {
		return nil, err
	}
	c := read(d.text.String(), offset)
	call, ok := c.call()
	if !ok || c.comment {
		return nil, nil
	}
	sig, params := s.signatureOf(d, c, call)
	if sig == nil {
		return nil, nil
	}
	active := call.commas
	if name := c.keyword(call); name != "" {
		active = -1
		for i, p := range params {
			if p == name {
				active = i
			}
		}
	}
	for i, p := range params { // what takes all further arguments takes this one
		if strings.HasPrefix(p, "*") && active > i && !strings.HasPrefix(p, "**") {
			active = i
		}
	}
	if active < 0 || active >= len(params) {
		active = len(params) // none
	}
	return &signatureHelp{Signatures: []signature{*sig}, ActiveParameter: active}, nil
}

// signatureOf is that of the function which is called, and the names of its parameters.
func (s *Server) signatureOf(d *document, c cursor, call bracket) (*signature, []string) {
	if spec, ok := s.builtin.specs[s.renamed(d, c.offset, call.callee)]; ok && !spec.Constant() {
		return signatureOfSpec(spec)
	}
	src, err := sourceOf(d)
	if err != nil {
		return nil, nil
	}
	at := target{source: src, id: src.global(call.callee)}
	for _, l := range src.loads() {
		if l.to.Name != call.callee {
			continue
		}
		of, ok := s.load(d, l.stmt.ModuleName())
		if !ok {
			return nil, nil
		}
		at = target{of, of.global(l.from.Name)}
	}
	if at.id == nil {
		return nil, nil
	}
	def := at.function(at.id.Name)
	if def == nil {
		return nil, nil
	}
	name, params := signatureOf(at.parsedText, def)
	sig := labelled(name, params)
	if doc := docOf(def); doc != "" {
		sig.Documentation = &markup{"markdown", docs.Dedent(doc)}
	}
	names := make([]string, len(params))
	for i, p := range params {
		names[i], _, _ = strings.Cut(p, "=")
	}
	return sig, names
}

func signatureOfSpec(spec spec.Spec) (*signature, []string) {
	var texts, names []string
	for _, p := range spec.Params {
		text := p.Name
		if p.Default != "" {
			text += "=" + p.Default
		}
		texts, names = append(texts, text), append(names, p.Name)
	}
	sig := labelled(spec.Name, texts)
	sig.Documentation = &markup{"markdown", spec.Doc}
	for i, p := range spec.Params {
		sig.Parameters[i].Documentation = &markup{"markdown", strings.TrimPrefix(docOfParam(p), "- ")}
	}
	return sig, names
}

// labelled writes a signature, and says where its parameters are in it.
func labelled(name string, params []string) *signature {
	sig := &signature{Label: name + "(", Parameters: []parameter{}}
	for i, p := range params {
		if i > 0 {
			sig.Label += ", "
		}
		start := units(sig.Label)
		sig.Label += p
		sig.Parameters = append(sig.Parameters, parameter{Label: [2]uint32{start, units(sig.Label)}})
	}
	sig.Label += ")"
	return sig
}

// units is how long a text is as the protocol counts.
func units(s string) uint32 { return uint32(len(utf16.Encode([]rune(s)))) }
