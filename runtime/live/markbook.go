package live

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	bookName = "running"
	// recordSize is that of a record: one that lies in one page of the page cache is
	// written whole, or not at all, by a process that is killed.
	recordSize = 256
	// noRecord stands for a mark that is not in the book.
	noRecord = -1
	// markLength is that of a mark, in bytes.
	markLength = 32

	markRunning = '1'
	markIdle    = '0'
)

// markBook is a file with a record per mark: whether it is under way, which one it is, and the
// name of the code. A record stays when the process ends, however that happens. The file is
// there as long as it is open.
type markBook struct {
	path    string
	file    bookFile // nil: nothing is marked yet
	records int
	spare   []int // records that nobody has
}

type bookFile interface {
	io.WriterAt
	io.Closer
}

// begin notes that a mark is under way, at its record; noRecord: it gets one.
func (b *markBook) begin(mark, what string, record *int) error {
	if err := b.open(); err != nil {
		return err
	}
	if *record != noRecord {
		return b.set(*record, markRunning)
	}
	at := b.records
	if n := len(b.spare); n > 0 {
		at = b.spare[n-1]
	}
	line := make([]byte, recordSize)
	for i := copy(line, string(markRunning)+" "+mark+" "+what); i < recordSize; i++ {
		line[i] = ' '
	}
	line[recordSize-1] = '\n'
	if _, err := b.file.WriteAt(line, int64(at)*recordSize); err != nil {
		return err
	}
	if at == b.records {
		b.records++
	} else {
		b.spare = b.spare[:len(b.spare)-1]
	}
	*record = at
	return nil
}

// end notes that the mark of a record is under way no more.
func (b *markBook) end(record int) error {
	if b.file == nil || record == noRecord {
		return nil
	}
	return b.set(record, markIdle)
}

// free gives back a record that has ended.
func (b *markBook) free(record int) {
	if record != noRecord {
		b.spare = append(b.spare, record)
	}
}

// close removes the book, and what is marked in it.
func (b *markBook) close() error {
	var err error
	if b.file != nil {
		err = b.file.Close()
	}
	b.file, b.records, b.spare = nil, 0, nil
	return errors.Join(err, removeFile(b.path))
}

func (b *markBook) open() error {
	if b.file != nil {
		return nil
	}
	file, err := os.OpenFile(b.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		b.file = file
	}
	return err
}

func (b *markBook) set(record int, state byte) error {
	_, err := b.file.WriteAt([]byte{state}, int64(record)*recordSize)
	return err
}

// readMarks returns what was under way when the process ended that wrote a book.
func readMarks(path string) (map[string]bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	under := map[string]bool{}
	for ; len(data) >= recordSize; data = data[recordSize:] {
		if words := strings.Fields(string(data[:recordSize])); len(words) > 1 && words[0] == string(markRunning) && len(words[1]) == markLength {
			under[words[1]] = true
		}
	}
	return under, err
}
