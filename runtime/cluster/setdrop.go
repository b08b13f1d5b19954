package cluster

import "strings"

// SetMark stands for all sets that were applied so far: what is applied later belongs to
// an object that has come since.
func (w *Writer) SetMark() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.applied
}

// DropSets forgets the sets with an owner that a hook with for_each has applied until now for objects that are gone:
// what these owned goes by itself. Sets without an owner stay, with their members.
func (w *Writer) DropSets(manager string, gone func(key string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, s := range w.sets {
		key, _, each := strings.Cut(s.name, " ")
		if s.manager != manager || !s.owned || !each || !gone(key) {
			continue
		}
		if s.dropped = s.at; s.users == 0 {
			delete(w.sets, id)
		}
	}
}
