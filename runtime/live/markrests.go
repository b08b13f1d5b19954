package live

import "time"

// restsFor is how long a mark stays in the book after the end of what may come again at once.
const restsFor = time.Millisecond

// endSoon is end for what may come again at once.
func (m *Marks) endSoon(mark string, r *running) {
	if r.times--; r.times > 0 {
		return
	}
	if r.rests = true; r.gone {
		m.drop(mark, r)
		return
	}
	if m.rests = append(m.rests, r); len(m.rests) == 1 {
		time.AfterFunc(restsFor, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.rest()
		})
	}
}

// rest takes the marks out of the book of all that has ended.
func (m *Marks) rest() {
	for _, r := range m.rests {
		m.endRest(r)
	}
	m.rests = nil
}

func (m *Marks) endRest(r *running) {
	if r.rests {
		r.rests = false
		_ = m.book.end(r.record) // a mark that stays counts once
	}
}
