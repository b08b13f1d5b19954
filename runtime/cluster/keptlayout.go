package cluster

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// change is one Secret to write, with all the keys it then holds; none means that
// it goes away.
type change struct {
	part int
	keys []string
}

// changes compares data with what is stored and returns what to write, in an
// order that loses no key at a crash: first the Secrets that keys move to, then those
// with a copy that is outdated, then the others that get something new, then those that only
// lose keys, older before newer, so that an outdated copy never outlives the right one.
func (m *keptModule) changes(data map[string][]byte) []change {
	target := m.layout(data, false)
	receives, outdated, crossed := m.moves(target, data)
	if crossed {
		target = m.layout(data, true)
		receives, _, _ = m.moves(target, data)
	}
	numbers := slices.Collect(maps.Keys(m.parts))
	for number := range target {
		if m.parts[number] == nil {
			numbers = append(numbers, number)
		}
	}
	type ranked struct {
		change
		rank     int
		revision int64
	}
	var out []ranked
	for _, number := range numbers {
		p := m.parts[number]
		if p == nil {
			p = &part{}
		}
		keys := target[number]
		slices.Sort(keys)
		gains, same := false, len(p.sums) == len(keys) && len(keys) > 0
		for _, key := range keys {
			sum, stored := p.sums[key]
			if !stored || sum != sha256.Sum256(data[key]) {
				gains, same = true, false
			}
		}
		switch {
		case same:
		case receives[number]:
			out = append(out, ranked{change{number, keys}, 0, 0})
		case outdated[number]:
			out = append(out, ranked{change{number, keys}, 1, p.revision})
		case gains:
			out = append(out, ranked{change{number, keys}, 2, 0})
		default:
			out = append(out, ranked{change{number, keys}, 3, p.revision})
		}
	}
	slices.SortFunc(out, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.revision, b.revision), cmp.Compare(a.part, b.part))
	})
	changes := make([]change, len(out))
	for i, r := range out {
		changes[i] = r.change
	}
	return changes
}

// moves says which Secrets get keys that are stored in another one, and which hold a key of
// which a crash has left a newer value in another one. Crossed says that one of those that get
// keys gives such keys away as well, or the right value of one that goes: then no order of
// writes is safe.
func (m *keptModule) moves(target map[int][]string, data map[string][]byte) (receives, outdated map[int]bool, crossed bool) {
	receives, outdated = map[int]bool{}, map[int]bool{}
	gives := map[int]bool{}
	for number, keys := range target {
		for _, key := range keys {
			if home := m.home(key); home != 0 && home != number {
				receives[number], gives[home] = true, true
			}
		}
	}
	for number, p := range m.parts {
		for key := range p.sums {
			home := m.home(key)
			if home == number {
				continue
			}
			outdated[number] = true
			if _, stays := data[key]; !stays {
				gives[home] = true
			}
		}
	}
	for number := range receives {
		crossed = crossed || gives[number]
	}
	return receives, outdated, crossed
}

// layout says which key goes into which Secret. A key stays where it is as long
// as it fits, so that a change of one writes one Secret; Secrets that are nearly
// empty are joined. cautious moves keys to new Secrets only.
func (m *keptModule) layout(data map[string][]byte, cautious bool) map[int][]string {
	target := map[int][]string{}
	size := map[int]int{}
	put := func(number int, key string) {
		target[number] = append(target[number], key)
		size[number] += len(key) + len(data[key])
	}
	fits := func(number int, key string) bool {
		return size[number] == 0 || size[number]+len(key)+len(data[key]) <= partLimit
	}
	var homeless []string
	for _, key := range slices.SortedFunc(maps.Keys(data), compareKeys) {
		if home := m.home(key); home != 0 && fits(home, key) {
			put(home, key)
		} else {
			homeless = append(homeless, key)
		}
	}
	for _, key := range homeless {
		number := 1
		for !fits(number, key) || cautious && m.parts[number] != nil {
			number++
		}
		put(number, key)
	}
	if cautious {
		return target
	}
	// Join from the end: the last Secret into the first one with room for both
	// and as much again, so that they do not part at the next small change.
	for _, last := range slices.Backward(slices.Sorted(maps.Keys(target))) {
		for number := 1; number < last; number++ {
			if size[number]+size[last] <= partLimit/2 {
				target[number] = append(target[number], target[last]...)
				size[number] += size[last]
				delete(target, last)
				delete(size, last)
				break
			}
		}
	}
	return target
}

// home is the Secret that holds the newest value of key; 0 means none.
func (m *keptModule) home(key string) int {
	home := 0
	for number, p := range m.parts {
		if _, ok := p.sums[key]; !ok {
			continue
		}
		if home == 0 || p.revision > m.parts[home].revision || p.revision == m.parts[home].revision && number < home {
			home = number
		}
	}
	return home
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
