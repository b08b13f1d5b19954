// Package inputs writes down what the engine of a process is given, and hands it to a new engine
// again: the same inputs at the same times have the same actions, byte for byte. Random numbers,
// refusals to evaluate something, and the files of each module tree are written down, too, so
// nothing but the file is needed.
//
// Inputs are carried by reflection, field by field: a field that cannot be carried ends the
// recording, and fails a test before that.
package inputs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/starling-operator/starling/runtime/codec"
	"github.com/starling-operator/starling/runtime/engine"
)

// format is the version of the file. It grows when an entry no longer means what it meant.
const format = 1

const (
	// MaxFile is how large a file may become, in bytes.
	MaxFile = 256 << 20
	// maxText is how much of an action stands in the file; of a longer one the beginning and a
	// digest do.
	maxText = 4 << 10
)

// entry is a part of the file: its length, then its data. One of the fields is set.
type entry struct {
	Head *head `cbor:"head,omitempty"`
	// Tree is the module tree that the next entry is about.
	Tree *tree `cbor:"tree,omitempty"`
	// Follow is a tree that came before the engine had begun.
	Follow *asked `cbor:"follow,omitempty"`
	Input  *input `cbor:"input,omitempty"`
}

// head begins a file.
type head struct {
	Format  int    `cbor:"format"`
	Version string `cbor:"version"` // of the starling that wrote it
	// Options are those of [engine.Options] that are data.
	Options cbor.RawMessage `cbor:"options"`
}

// asked is what the engine has asked the driver's functions meanwhile.
type asked struct {
	Jitter  []float64 `cbor:"jitter,omitempty"`
	Refused []refusal `cbor:"refused,omitempty"`
}

// refusal is something that must not be evaluated.
type refusal struct {
	What   string `cbor:"what"`
	Digest string `cbor:"digest"`
	Why    string `cbor:"why"`
}

// input is one call of [engine.Engine.Handle].
type input struct {
	At    int64           `cbor:"at"` // nanoseconds since 1970
	Kind  string          `cbor:"kind"`
	Data  cbor.RawMessage `cbor:"data"`
	Asked asked           `cbor:"asked"`
	// Actions are those that followed, for comparison only.
	Actions []action `cbor:"actions,omitempty"`
}

// action is one action as a text.
type action struct {
	Kind string `cbor:"kind"`
	Text string `cbor:"text"`
}

// kinds are all inputs by their names.
var kinds = []engine.Input{
	engine.Start{}, engine.Kept{}, engine.Stays{}, engine.Reload{}, engine.Config{}, engine.Reconcile{}, engine.RunNow{}, engine.WatchSynced{}, engine.WatchChanged{}, engine.WatchFailed{},
	engine.Tick{}, engine.RunDone{}, engine.Requested{}, engine.Unheld{}, engine.Committed{}, engine.Evaluated{}, engine.SettingsChecked{},
	engine.CRDsApplied{}, engine.Released{}, engine.Drift{}, engine.Repaired{}, engine.Uninstalled{}, engine.Saved{}, engine.SetsRemoved{}, engine.Sent{},
}

// writeEntry appends an entry to data.
func writeEntry(data []byte, e *entry) ([]byte, error) {
	body, err := codec.Write(e)
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(data, uint64(len(body))), body...), nil
}

var errBroken = errors.New("it is no file of --record-inputs, or a broken one")

// reader is what a file is read from.
type reader interface {
	io.Reader
	io.ByteReader
}

// readEntry returns the next entry. [io.EOF]: there is no more; [io.ErrUnexpectedEOF]: the
// last one is cut off, as by a process that was killed.
func readEntry(r reader) (*entry, error) {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if size > MaxFile {
		return nil, errBroken
	}
	// Only as much memory as there is data: the length may be a lie.
	body, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err != nil {
		return nil, err
	}
	if uint64(len(body)) < size {
		return nil, io.ErrUnexpectedEOF
	}
	e := &entry{}
	if codec.Read(body, e) != nil {
		return nil, errBroken
	}
	return e, nil
}

// DifferenceError is the first difference between then and now.
type DifferenceError struct {
	// Input is the number of the input, from 1; Kind is its name, At its time.
	Input int
	Kind  string
	At    time.Time
	// Text says what differs.
	Text string
}

// Error names the input and what differs.
func (e *DifferenceError) Error() string {
	return fmt.Sprintf("input %d (%s, %s): %s", e.Input, e.Kind, e.At.Format(time.RFC3339Nano), e.Text)
}
