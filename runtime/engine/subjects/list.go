package subjects

import (
	"slices"
	"strings"
)

// list are subjects of one hook, sorted by key.
type list []*Subject

func (l list) find(key string) (int, bool) {
	return slices.BinarySearchFunc(l, key, func(s *Subject, key string) int { return strings.Compare(s.Key, key) })
}

// at returns the subject with a key, or nil.
func (l list) at(key string) *Subject {
	if i, found := l.find(key); found {
		return l[i]
	}
	return nil
}

// put adds a subject, in the place of one with its key.
func (l *list) put(s *Subject) {
	i, found := l.find(s.Key)
	if !found {
		*l = slices.Insert(*l, i, s)
	}
	(*l)[i] = s
}

func (l *list) drop(key string) {
	if i, found := l.find(key); found {
		*l = slices.Delete(*l, i, i+1)
	}
}
