package lsp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// MaxMessage is the largest message that a client may send, in bytes: a document of the largest size, with each
// character escaped.
const MaxMessage = 16 << 20

// maxHeader bounds a line of the header of a message.
const maxHeader = 4096

// codec reads and writes the messages of the base protocol. A message that is none is answered with an error and passed
// over: the reading goes on at the next header. Only the end of the stream ends it.
type codec struct {
	// refuse answers a message that cannot be read.
	refuse func(code int64, why string)
}

var _ jsonrpc2.ObjectCodec = codec{}

// WriteObject implements [jsonrpc2.ObjectCodec].
func (codec) WriteObject(w io.Writer, obj any) error {
	return jsonrpc2.VSCodeObjectCodec{}.WriteObject(w, obj)
}

// ReadObject implements [jsonrpc2.ObjectCodec].
func (c codec) ReadObject(r *bufio.Reader, v any) error {
	for {
		size, err := contentLength(r)
		if err != nil {
			return err
		}
		if size > MaxMessage {
			// It may be as long as it says or not: what follows is passed over up to a header.
			c.refuse(jsonrpc2.CodeInvalidRequest, fmt.Sprintf("the message has %d bytes, more than %d MiB", size, MaxMessage>>20))
			continue
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(r, data); err != nil {
			return err
		}
		switch err := json.Unmarshal(data, v); {
		case err == nil:
			return nil
		case !json.Valid(data):
			c.refuse(jsonrpc2.CodeParseError, "the message is no JSON")
		default:
			c.refuse(jsonrpc2.CodeInvalidRequest, "the message is no request, notification or answer of JSON-RPC 2.0")
		}
	}
}

// contentLength reads headers up to one that says how long its message is. All that belongs to no header is passed over,
// even on the line on which one begins: the message before may have been longer than it said.
func contentLength(r *bufio.Reader) (int64, error) {
	size := int64(-1)
	for {
		line, err := readLine(r)
		if err != nil {
			return 0, err
		}
		if line == "" && size >= 0 {
			return size, nil
		}
		if i := strings.LastIndex(strings.ToLower(line), header); i >= 0 {
			n, err := strconv.ParseInt(strings.TrimSpace(line[i+len(header):]), 10, 64)
			if err != nil || n < 0 {
				n = -1
			}
			size = n
		}
	}
}

const header = "content-length:"

// readLine reads a line; of one that is too long the end counts.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if over := len(line) - maxHeader; over > 0 {
			line = line[over:]
		}
		switch {
		case err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
