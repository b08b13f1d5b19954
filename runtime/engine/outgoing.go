package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/persist"
)

// Messages that hooks say with http.send are kept with what their run sets, until they have arrived: the
// next process sends those that wait.

// MaxKeptMessages is how much is kept of the messages of one module, in bytes. A message for which
// there is no room is in memory alone.
const MaxKeptMessages = 64 << 10

// messageKey begins the keys under which messages are kept.
const messageKey = effect.KeptMessage

// keptMessage is a message as it is kept. Nothing of it stands in the key: people see that.
type keptMessage struct {
	Hook string    `json:"hook"`
	At   time.Time `json:"at"`
	// Run and Number tell apart messages that say the same.
	Run     uint64         `json:"run"`
	Number  int            `json:"number"`
	Message effect.Message `json:"message"`
}

// outgoing is a message of a run, and how it would be kept.
type outgoing struct {
	keptMessage
	name string
	data []byte
}

// messages are those of a run. They are the same each time that one asks.
func (r *asked) messages() []outgoing {
	out := make([]outgoing, len(r.done.Effects.Messages))
	for i, said := range r.done.Effects.Messages {
		m := outgoing{keptMessage: keptMessage{Hook: r.hook.gen.ID, At: r.call().Now.UTC(), Run: r.done.Run, Number: i, Message: said}}
		m.data, _ = json.Marshal(m.keptMessage) // texts, numbers and bytes
		m.name = messageKey + sumOf(m.data)
		if said.Key != "" { // a later one takes its place
			m.name = messageKey + sumOf([]byte(m.Hook+"\x00"+said.Key))
		}
		out[i] = m
	}
	return out
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// keepMessages adds the messages of a run to what it changes. Sizes are those of all messages that are kept
// by then, by name.
func (r *asked) keepMessages(change persist.Change, sizes map[string]int) {
	for _, m := range r.messages() {
		delete(sizes, m.name)
		together := len(m.data)
		for _, size := range sizes {
			together += size
		}
		if together > MaxKeptMessages {
			change[m.name] = nil // an older one of its key must not come after it
			continue
		}
		change[m.name], sizes[m.name] = m.data, len(m.data)
	}
}

// messageSizes are the sizes of the messages that are kept, by name.
func (m *module) messageSizes() map[string]int {
	sizes := map[string]int{}
	for key, data := range m.store.Data() {
		if strings.HasPrefix(key, messageKey) {
			sizes[key] = len(data)
		}
	}
	return sizes
}

// Kept are the sums of those messages that are kept, by their names: what [Sent] tells once they have arrived.
func (s Send) Kept() map[string]string {
	sums := map[string]string{}
	for _, m := range s.Messages {
		if m.Name != "" {
			sums[m.Name] = m.Sum
		}
	}
	return sums
}

// send has the messages of a run sent, which is committed.
func (t *turn) send(r *asked) {
	var messages []Message
	for _, m := range r.messages() {
		said := Message{Message: m.Message, At: m.At}
		if bytes.Equal(r.hook.module.store.Data()[m.name], m.data) {
			said.Name, said.Sum = m.name, sumOf(m.data)
		}
		messages = append(messages, said)
	}
	if len(messages) > 0 {
		t.do(Send{Module: r.hook.module.name, Hook: r.hook.gen.ID, Messages: messages})
	}
}

// sendKept has messages sent of which an earlier process does not know that they have arrived.
func (t *turn) sendKept(m *module) {
	for key, data := range m.store.All() {
		if strings.HasPrefix(key, messageKey) {
			if k, err := decodeMessage(data); err == nil {
				t.do(Send{Module: m.name, Hook: k.Hook, Messages: []Message{{Message: k.Message, At: k.At, Name: key, Sum: sumOf(data)}}})
			}
		}
	}
}

// readMessage says whether a message can be read: it waits in the store, whichever hook has said it.
func readMessage(_ *turn, _ *module, data []byte) (known bool, err error) {
	_, err = decodeMessage(data)
	return true, err
}

func decodeMessage(data []byte) (k keptMessage, err error) {
	err = json.Unmarshal(data, &k)
	return k, err
}

// sent has messages kept no more that wait no more, unless a later one has taken the place.
func (*turn) sent(m *module, in Sent) {
	for name, sum := range in.Sums {
		if m.store.Has(name) && sumOf(m.store.Data()[name]) == sum {
			m.store.Put(name, nil)
		}
	}
}
