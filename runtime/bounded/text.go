package bounded

import (
	"bytes"
	"errors"
)

// errUTF16 is for people, and says what to do.
var errUTF16 = errors.New("is UTF-16: save it as UTF-8")

// Text is what people have written in a file, without the byte order mark that editors on Windows put before it: a
// parser would take it for a part of the first word. The marks of UTF-16 are an error, "is …".
func Text(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return data, errUTF16
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}
