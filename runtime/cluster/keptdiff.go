package cluster

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// saved is what a save has stored: the next one looks at the keys that differ, and not
// at each of thousands.
type saved struct {
	data map[string][]byte
	home map[string]int // the number of the Secret, by key
	size map[int]int    // in bytes, by number
}

// newSaved takes note of data, all of which is stored now.
func newSaved(m *keptModule, data map[string][]byte) *saved {
	s := &saved{data: maps.Clone(data), home: map[string]int{}, size: map[int]int{}}
	for number, p := range m.parts {
		for key := range p.sums {
			s.home[key] = number
			s.size[number] += len(key) + len(data[key])
		}
	}
	return s
}

// differs returns the keys that are new or have another value, and those that are gone.
func (s *saved) differs(data map[string][]byte) (changed, gone []string) {
	if s == nil {
		return slices.SortedFunc(maps.Keys(data), compareKeys), nil
	}
	fresh := 0
	for key, value := range data {
		old, stored := s.data[key]
		if !stored {
			fresh++
		}
		if !stored || !bytes.Equal(old, value) {
			changed = append(changed, key)
		}
	}
	if len(data)-fresh < len(s.data) {
		for key := range s.data {
			if _, stays := data[key]; !stays {
				gone = append(gone, key)
			}
		}
	}
	slices.SortFunc(changed, compareKeys)
	return changed, gone
}

// compareKeys sorts keys by what comes after their first word, so that the layer and the
// state of one subject come into one Secret.
func compareKeys(a, b string) int {
	_, left, _ := strings.Cut(a, ".")
	_, right, _ := strings.Cut(b, ".")
	return cmp.Or(strings.Compare(left, right), strings.Compare(a, b))
}

// patch returns the writes of a save by which no stored key moves: a new key goes into
// the first Secret that has room, or into one more. It is nil when the layout has to be
// looked at as a whole: a stored key grows out of its Secret, or one is so empty that it may
// be joined with another one.
func (s *saved) patch(m *keptModule, data map[string][]byte, changed, gone []string) *patch {
	if s == nil {
		return nil
	}
	p := &patch{keys: map[int]map[string]bool{}, size: maps.Clone(s.size), gains: map[int]bool{}}
	for _, key := range gone {
		number := s.home[key]
		p.size[number] -= len(key) + len(s.data[key])
		p.of(m, number)[key] = false
		if p.size[number] == 0 || len(s.size) > 1 && p.size[number] < partLimit/4 {
			return nil
		}
	}
	for _, key := range changed {
		number, stored := s.home[key]
		grows := len(data[key]) - len(s.data[key])
		if !stored {
			grows = len(key) + len(data[key])
			for number = 1; p.size[number] > 0 && max(s.size[number], p.size[number])+grows > partLimit; number++ {
			}
		} else if grows > 0 && p.size[number]+grows > partLimit {
			return nil
		}
		p.size[number] += grows
		p.gains[number] = true
		p.of(m, number)[key] = true
	}
	return p
}

// patch is what a save writes that moves no key.
type patch struct {
	keys  map[int]map[string]bool // of each Secret to write; false: goes
	size  map[int]int
	gains map[int]bool // those that get something new
}

// of returns the keys of a Secret, at first as they are stored.
func (p *patch) of(m *keptModule, number int) map[string]bool {
	if p.keys[number] == nil {
		p.keys[number] = map[string]bool{}
		if stored := m.parts[number]; stored != nil {
			for key := range stored.sums {
				p.keys[number][key] = true
			}
		}
	}
	return p.keys[number]
}

// changes are the writes: those that give something new come before those that only
// take away.
func (p *patch) changes() (out []change) {
	rank := func(number int) int {
		if p.gains[number] {
			return 0
		}
		return 1
	}
	for _, number := range slices.SortedFunc(maps.Keys(p.keys), func(a, b int) int { return cmp.Or(rank(a)-rank(b), a-b) }) {
		keys := p.keys[number]
		maps.DeleteFunc(keys, func(_ string, stays bool) bool { return !stays })
		out = append(out, change{number, slices.Sorted(maps.Keys(keys))})
	}
	return out
}

// patched is newSaved after a patch.
func (s *saved) patched(p *patch, data map[string][]byte, changed, gone []string) *saved {
	for _, key := range gone {
		delete(s.data, key)
		delete(s.home, key)
	}
	for _, key := range changed {
		s.data[key] = data[key]
	}
	for number, keys := range p.keys {
		for key := range keys {
			s.home[key] = number
		}
	}
	s.size = p.size
	return s
}

// keepable says which of some keys of data cannot be kept.
func keepable(module string, data map[string][]byte, keys []string) error {
	for _, key := range keys {
		if key == "" {
			return fmt.Errorf("module %s: data cannot be kept under an empty name", module)
		}
		if len(data[key]) > valueLimit {
			return fmt.Errorf("module %s: the kept state of %q has %d KiB, more than the %d KiB that fit into a Secret: keep less", module, key, len(data[key])>>10, valueLimit>>10)
		}
		if len(encodeKey(key)) > validation.DNS1123SubdomainMaxLength {
			return fmt.Errorf("module %s: %q is too long a name to keep data under: shorten it", module, key)
		}
	}
	return nil
}
