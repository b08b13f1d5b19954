package cluster

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// saved is what is stored: a save looks at the keys that differ, and not at each of thousands.
type saved struct {
	data map[string][]byte // empty after a start or a failure, when no more is known than digests
	home map[string]int    // the number of the Secret that has the newest value, by key
	size map[int]int       // in bytes, by number; as data
	// outdated are the Secrets with an old value of a key: a crash has left the newer one in another Secret.
	outdated map[int]bool
}

// unsure is what is known to be stored by the Secrets alone.
func (m *keptModule) unsure() *saved {
	s := &saved{data: map[string][]byte{}, home: map[string]int{}, size: map[int]int{}, outdated: map[int]bool{}}
	for number, p := range m.parts {
		if len(p.sums) == 0 { // it goes
			s.outdated[number] = true
		}
		for key := range p.sums {
			older, twice := s.home[key]
			if !twice || cmp.Or(cmp.Compare(p.revision, m.parts[older].revision), older-number) > 0 {
				s.home[key] = number
			} else {
				older = number
			}
			if twice {
				s.outdated[older] = true
			}
		}
	}
	return s
}

// differs returns the keys that are new or have another value, and the keys that are gone.
func (s *saved) differs(data map[string][]byte) (changed, gone []string) {
	fresh := 0
	for key, value := range data {
		if old, known := s.data[key]; known && bytes.Equal(old, value) {
			continue
		}
		if _, stored := s.home[key]; !stored {
			fresh++
		}
		changed = append(changed, key)
	}
	if len(data)-fresh < len(s.home) {
		for key := range s.home {
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

// layout is where keys come by a save.
type layout struct {
	m    *keptModule
	was  *saved
	data map[string][]byte
	to   map[string]int // of each key that is new, or gets another value or place
	size map[int]int
	// touched are the Secrets that differ.
	touched map[int]bool
	first   bool // no key goes, and no Secrets are joined
}

// layout says which key goes into which Secret. A key stays where it is as long as it fits, so that a change of one
// writes one Secret. It moves to a new Secret, or to one that nothing else changes: no Secret both takes and gives keys,
// so there is an order of writes in which no crash loses one. In the first step of a save all but the changed keys stays
// as it is stored.
func (m *keptModule) layout(was *saved, data map[string][]byte, changed, gone []string, first bool) *layout {
	l := &layout{m: m, was: was, data: data, to: map[string]int{}, size: maps.Clone(was.size), first: first}
	l.touched = maps.Clone(was.outdated)
	if l.touched == nil {
		l.touched = map[int]bool{}
	}
	for _, key := range slices.Concat(changed, gone) {
		if home := was.home[key]; home != 0 {
			l.touched[home] = true
			if old, known := was.data[key]; known {
				l.size[home] -= len(key) + len(old)
			}
		}
	}
	fits := func(number int, key string) bool {
		return l.size[number] == 0 || l.size[number]+len(key)+len(data[key]) <= m.room
	}
	put := func(number int, key string) {
		l.to[key], l.touched[number] = number, true
		l.size[number] += len(key) + len(data[key])
	}
	var homeless []string
	for _, key := range changed {
		if home := was.home[key]; home != 0 && fits(home, key) {
			put(home, key)
		} else {
			homeless = append(homeless, key)
		}
	}
	for _, key := range homeless {
		number := 1
		for !fits(number, key) || was.home[key] != 0 && m.parts[number] != nil && l.touched[number] {
			number++
		}
		put(number, key)
	}
	if !first {
		l.join()
	}
	return l
}

// join puts what is in Secrets that are nearly empty into a new one, with room for as much again, so that it does not
// part at the next small change.
func (l *layout) join() {
	var small []int
	size, number := 0, 1
	for _, n := range slices.Sorted(maps.Keys(l.size)) {
		if l.size[n] > 0 && size+l.size[n] <= l.m.room/2 {
			small, size = append(small, n), size+l.size[n]
		}
	}
	if len(small) < 2 {
		return
	}
	for l.m.parts[number] != nil || l.size[number] > 0 {
		number++
	}
	for _, n := range small {
		for _, key := range l.keys(n) {
			l.to[key] = number
		}
		l.size[n], l.touched[n] = 0, true
	}
	l.size[number], l.touched[number] = size, true
}

// keys are those that a Secret then holds.
func (l *layout) keys(number int) (out []string) {
	if p := l.m.parts[number]; p != nil {
		for key := range p.sums {
			_, moves := l.to[key]
			if _, stays := l.data[key]; (stays || l.first) && !moves && l.was.home[key] == number {
				out = append(out, key)
			}
		}
	}
	for key, to := range l.to {
		if to == number {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// change is one Secret to write, with all the keys it then holds, and the sums of their values; none means that
// it goes away.
type change struct {
	part int
	sums map[string][sha256.Size]byte
}

// changes returns what to write, in an order that loses no key at a crash: first the Secrets that keys move to, then
// those with a copy that is outdated, then the others that get something new, then those that only lose keys, older
// before newer, so that an outdated copy never outlives the right one.
func (l *layout) changes() (out []change) {
	rank, revision := map[int]int{}, map[int]int64{}
	for number := range l.touched {
		p := l.m.parts[number]
		if p == nil {
			p = &part{}
		}
		sums, gains, receives := map[string][sha256.Size]byte{}, false, false
		for _, key := range l.keys(number) {
			sum, stored := p.sums[key]
			if sums[key] = sum; l.to[key] != 0 {
				sums[key] = sha256.Sum256(l.data[key])
				gains = gains || !stored || sum != sums[key]
				receives = receives || !stored && l.was.home[key] != 0
			}
		}
		switch {
		case !gains && len(sums) == len(p.sums) && (len(sums) > 0 || l.m.parts[number] == nil):
			continue
		case receives:
			rank[number] = 0
		case l.was.outdated[number]:
			rank[number], revision[number] = 1, p.revision
		case gains:
			rank[number] = 2
		default:
			rank[number], revision[number] = 3, p.revision
		}
		out = append(out, change{number, sums})
	}
	slices.SortFunc(out, func(a, b change) int {
		return cmp.Or(rank[a.part]-rank[b.part], cmp.Compare(revision[a.part], revision[b.part]), a.part-b.part)
	})
	return out
}

// saved is what is stored once all is written.
func (l *layout) saved(changed, gone []string) *saved {
	s := l.was
	for _, key := range gone {
		delete(s.data, key)
		delete(s.home, key)
	}
	for _, key := range changed {
		s.data[key] = l.data[key]
	}
	maps.Copy(s.home, l.to)
	maps.DeleteFunc(l.size, func(_, size int) bool { return size == 0 })
	s.size, s.outdated = l.size, nil
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

// encodeKey writes any text as a key of a Secret: what a key may not hold, and the
// underscore, becomes an underscore and two hex digits a byte.
func encodeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// decodeKey is the inverse of encodeKey.
func decodeKey(encoded string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '_' {
			b.WriteByte(encoded[i])
			continue
		}
		if i+2 >= len(encoded) {
			return "", false
		}
		c, err := strconv.ParseUint(encoded[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), b.Len() > 0
}
