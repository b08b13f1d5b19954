package repl

// place is where in a text a cursor stands.
type place struct {
	comment bool
	quote   int // where the text begins that it stands in; -1: in none
	call
}

// call is a call, or another bracket, that is open.
type call struct {
	callee     string // "k8s.watch"; "" for what is no call of a name
	positional int    // arguments before the one at the cursor that have no name
	given      map[string]bool
	value      bool // the cursor comes after "name=", or the like
	began      int  // where the argument begins
	named      bool // the argument has a name
}

// scan finds out where the end of a text stands.
func scan(text string) place {
	at := place{quote: -1}
	var open []call
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '#':
			end := lineEnd(text, i)
			if end == len(text) {
				at.comment = true
				return at
			}
			i = end
		case '"', '\'':
			first, next := textEnd(text, i)
			if next < 0 {
				at.quote, at.call = first, call{}
				if n := len(open); n > 0 {
					at.call = open[n-1]
				}
				return at
			}
			i = next - 1
		case '(', '[', '{':
			one := call{began: i + 1, given: map[string]bool{}}
			if c == '(' {
				one.callee = wordsBefore(text, i)
			}
			open = append(open, one)
		case ')', ']', '}':
			if n := len(open); n > 0 {
				open = open[:n-1]
			}
		case ',':
			if n := len(open); n > 0 {
				o := &open[n-1]
				if !o.named {
					o.positional++
				}
				o.began, o.named = i+1, false
			}
		case '=':
			if i+1 < len(text) && text[i+1] == '=' || i > 0 && (text[i-1] == '=' || text[i-1] == '!' || text[i-1] == '<' || text[i-1] == '>') {
				continue
			}
			if n := len(open); n > 0 && !open[n-1].named {
				if name := wordsBefore(text, i); name != "" {
					open[n-1].given[name], open[n-1].named = true, true
				}
			}
		}
	}
	if n := len(open); n > 0 {
		at.call = open[n-1]
		at.value = at.named || !onlyWord(text[at.began:])
	}
	return at
}

// onlyWord reports whether an argument has nothing but the word that is being typed.
func onlyWord(text string) bool {
	seen := false
	for i := range len(text) {
		switch c := text[i]; {
		case isWord(c):
			seen = true
		case c == ' ' || c == '\t' || c == '\n':
			if seen {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func lineEnd(text string, i int) int {
	for i < len(text) && text[i] != '\n' {
		i++
	}
	return i
}

// textEnd returns where the text begins that a quote opens, and the place behind its
// end; -1 if it is open.
func textEnd(text string, i int) (first, next int) {
	quote := text[i : i+1]
	if long := quote + quote + quote; len(text) >= i+3 && text[i:i+3] == long {
		quote = long
	}
	first = i + len(quote)
	for j := first; j < len(text); j++ {
		switch {
		case text[j] == '\\':
			j++
		case text[j] == '\n' && len(quote) == 1:
			return first, j // broken: the line's end ends it
		case len(text) >= j+len(quote) && text[j:j+len(quote)] == quote:
			return first, j + len(quote)
		}
	}
	return first, -1
}

// wordsBefore returns the dotted words that end before a place, blanks aside.
func wordsBefore(text string, i int) string {
	for i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
		i--
	}
	end := i
	for i > 0 && (isWord(text[i-1]) || text[i-1] == '.') {
		i--
	}
	return text[i:end]
}
