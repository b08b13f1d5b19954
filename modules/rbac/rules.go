package rbac

import (
	"cmp"
	"slices"
	"strings"
)

// order is how verbs are printed.
var order = [...]string{"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "approve"}

// rules are those of one role, each resource, names and URL once.
type rules struct{ list []Rule }

func (r Rule) key() string {
	return strings.Join([]string{r.URL, r.Group, r.Resource, strings.Join(r.Names, ",")}, "\x00")
}

func (s *rules) add(r Rule) {
	r.Names = sorted(r.Names)
	for i := range s.list {
		if at := &s.list[i]; at.key() == r.key() {
			at.Verbs = append(at.Verbs, r.Verbs...)
			at.Why = append(at.Why, r.Why...)
			return
		}
	}
	r.Verbs, r.Why = slices.Clone(r.Verbs), slices.Clone(r.Why)
	s.list = append(s.list, r)
}

// reduced returns the rules without what others of them, or of above, which may be nil,
// allow anyway, sorted.
func (s *rules) reduced(above *rules) []Rule {
	var out []Rule
	for i, r := range s.list {
		r.Verbs = sorted(r.Verbs)
		r.Verbs = slices.DeleteFunc(r.Verbs, func(verb string) bool {
			for j, other := range s.list {
				if i != j && other.covers(r, verb) && (!r.covers(other, verb) || j < i) {
					return true
				}
			}
			return above != nil && slices.ContainsFunc(above.list, func(other Rule) bool { return other.covers(r, verb) })
		})
		if slices.Contains(r.Verbs, "*") {
			r.Verbs = []string{"*"}
		}
		if len(r.Verbs) == 0 {
			continue
		}
		slices.SortFunc(r.Verbs, func(a, b string) int {
			return cmp.Or(cmp.Compare(slices.Index(order[:], a), slices.Index(order[:], b)), cmp.Compare(a, b))
		})
		r.Why = sorted(r.Why)
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b Rule) int { return cmp.Compare(a.key(), b.key()) })
	return joined(out)
}

// joined puts rules that differ in names only into one.
func joined(list []Rule) []Rule {
	var out []Rule
	for _, r := range list {
		i := slices.IndexFunc(out, func(o Rule) bool {
			return o.Names != nil && r.Names != nil && o.Group == r.Group && o.Resource == r.Resource && o.URL == "" && r.URL == "" && slices.Equal(o.Verbs, r.Verbs)
		})
		if i < 0 {
			out = append(out, r)
			continue
		}
		out[i].Names = sorted(append(slices.Clone(out[i].Names), r.Names...))
		out[i].Why = sorted(append(slices.Clone(out[i].Why), r.Why...))
	}
	return out
}

// covers says whether the rule allows the verb on all that other is about.
func (r Rule) covers(other Rule, verb string) bool {
	if !slices.Contains(r.Verbs, verb) && !slices.Contains(r.Verbs, "*") {
		return false
	}
	if r.URL != "" || other.URL != "" {
		return r.URL == other.URL
	}
	if r.Group != other.Group && r.Group != "*" || r.Resource != other.Resource && r.Resource != "*" {
		return false
	}
	if r.Names == nil {
		return true
	}
	return other.Names != nil && !slices.ContainsFunc(other.Names, func(n string) bool { return !slices.Contains(r.Names, n) })
}

// sorted returns a sorted copy, each once; nil of nothing.
func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}
