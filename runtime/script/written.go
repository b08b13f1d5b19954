package script

import "go.starlark.net/syntax"

// NameOf is the name, with dots, that an expression is; "" for one that is no chain of names.
func NameOf(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if x := NameOf(e.X); x != "" {
			return x + "." + e.Name.Name
		}
	case *syntax.ParenExpr:
		return NameOf(e.X)
	}
	return ""
}

// ArgumentOf is the argument of a call at a place, or of a name; nil without it, and where *args or **kwargs may hold it.
func ArgumentOf(call *syntax.CallExpr, at int, name string) syntax.Expr {
	for i, arg := range call.Args {
		switch arg := arg.(type) {
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR {
				return nil
			}
		case *syntax.BinaryExpr:
			if arg.Op != syntax.EQ {
				break
			}
			if id, ok := arg.X.(*syntax.Ident); ok && id.Name == name {
				return arg.Y
			}
			continue
		}
		if i == at {
			return arg
		}
	}
	return nil
}

// TextOf is the text that an expression is; false for one that is none.
func TextOf(e syntax.Expr) (string, bool) {
	lit, ok := unparen(e).(*syntax.Literal)
	if !ok || lit.Token != syntax.STRING {
		return "", false
	}
	text, ok := lit.Value.(string)
	return text, ok
}

// TextsOf are the texts of a list of texts alone; false for what is none.
func TextsOf(e syntax.Expr) (texts []string, ok bool) {
	list, ok := e.(*syntax.ListExpr)
	if !ok {
		return nil, false
	}
	for _, e := range list.List {
		text, ok := TextOf(e)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}
