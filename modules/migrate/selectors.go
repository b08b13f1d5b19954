package migrate

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// labels sets a label selector, as a dict where that is enough, else as kubectl's text.
func (b *binder) labels(call *call, name string, s *labelSelector) {
	switch {
	case s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0:
	case len(s.MatchExpressions) == 0:
		call.set(name, s.MatchLabels)
	default:
		text, err := labelText(s)
		if err != nil {
			b.add(Left, "%s: %v", name, err)
			return
		}
		call.set(name, text)
	}
}

// labelText writes a label selector as kubectl takes it.
func labelText(s *labelSelector) (string, error) {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		parts = append(parts, key+"="+s.MatchLabels[key])
	}
	for _, e := range s.MatchExpressions {
		values := " (" + strings.Join(e.Values, ", ") + ")"
		switch e.Operator {
		case "In":
			parts = append(parts, e.Key+" in"+values)
		case "NotIn":
			parts = append(parts, e.Key+" notin"+values)
		case "Exists":
			parts = append(parts, e.Key)
		case "DoesNotExist":
			parts = append(parts, "!"+e.Key)
		default:
			return "", errors.New("the operator " + strconv.Quote(e.Operator) + " is none of In, NotIn, Exists, DoesNotExist")
		}
	}
	return strings.Join(parts, ","), nil
}

// fieldText writes a field selector as kubectl takes it.
func fieldText(s *fieldSelector) string {
	var parts []string
	for _, e := range s.MatchExpressions {
		operator := "="
		if e.Operator == "NotEquals" || e.Operator == "!=" {
			operator = "!="
		}
		parts = append(parts, e.Field+operator+e.Value)
	}
	return strings.Join(parts, ",")
}

// secretGrant is the grant that a watch of Secrets needs.
func secretGrant(w watched) raw {
	spaces := []string{"*"}
	if w.Namespace != nil && w.Namespace.NameSelector != nil && len(w.Namespace.NameSelector.MatchNames) > 0 {
		spaces = w.Namespace.NameSelector.MatchNames
	}
	c := &call{name: "grant", args: []string{`"v1"`, `"Secret"`}}
	c.set("verbs", []string{"list", "watch"})
	c.set("namespaces", spaces)
	return raw(c.text(0))
}
