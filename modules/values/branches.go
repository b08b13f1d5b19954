package values

import (
	"iter"
	"slices"
	"strings"
)

// branches are the trees below a node of a [joined], by key, sorted. They never change: with
// returns others, which share all chunks but one. A hook with for_each has as many keys as
// objects, and each of its runs changes one.
type branches struct{ chunks [][]branch }

type branch struct {
	key  string
	tree *joined
}

// maxChunk bounds what with copies.
const maxChunk = 64

// find returns where a key is, or where it would be.
func (b branches) find(key string) (chunk, at int, found bool) {
	after, starts := slices.BinarySearchFunc(b.chunks, key, func(c []branch, key string) int { return strings.Compare(c[0].key, key) })
	if starts {
		return after, 0, true
	}
	if after == 0 {
		return 0, 0, false
	}
	at, found = slices.BinarySearchFunc(b.chunks[after-1], key, func(e branch, key string) int { return strings.Compare(e.key, key) })
	return after - 1, at, found
}

func (b branches) empty() bool { return len(b.chunks) == 0 }

// at returns the tree at a key, or nil.
func (b branches) at(key string) *joined {
	if i, at, found := b.find(key); found {
		return b.chunks[i][at].tree
	}
	return nil
}

// all are the trees in the order of their keys.
func (b branches) all() iter.Seq2[string, *joined] {
	return func(yield func(string, *joined) bool) {
		for _, chunk := range b.chunks {
			for _, e := range chunk {
				if !yield(e.key, e.tree) {
					return
				}
			}
		}
	}
}

// with returns branches with another tree at a key; nil: none.
func (b branches) with(key string, tree *joined) branches {
	i, at, found := b.find(key)
	if !found && tree == nil {
		return b
	}
	var old []branch
	end := i
	if i < len(b.chunks) {
		old, end = b.chunks[i], i+1
	}
	next := make([]branch, 0, len(old)+1)
	next = append(next, old[:at]...)
	if tree != nil {
		next = append(next, branch{key, tree})
	}
	if found {
		at++
	}
	next = append(next, old[at:]...)
	chunks := [][]branch{next}
	switch half := len(next) / 2; {
	case len(next) == 0:
		chunks = nil
	case len(next) > maxChunk:
		chunks = [][]branch{next[:half:half], next[half:]}
	}
	return branches{slices.Concat(b.chunks[:i], chunks, b.chunks[end:])}
}
