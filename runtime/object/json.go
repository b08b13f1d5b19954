package object

import (
	"encoding/json"
	"slices"
	"strconv"
)

// AppendJSON appends plain data to out, byte for byte as [json.Marshal] writes it, without reflection where
// that is not needed. It fails where json.Marshal does.
func AppendJSON(out []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case string:
		return appendText(out, v)
	case map[string]any:
		if v != nil {
			return appendMap(out, v)
		}
	case []any:
		if v != nil {
			return appendList(out, v)
		}
	}
	return appendMarshalled(out, v)
}

func appendMarshalled(out []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	return append(out, text...), err
}

func appendText(out []byte, s string) ([]byte, error) {
	for i := range len(s) {
		switch b := s[i]; {
		case b < ' ', b > '~', b == '"', b == '\\', b == '<', b == '>', b == '&':
			return appendMarshalled(out, s)
		}
	}
	out = append(out, '"')
	out = append(out, s...)
	return append(out, '"'), nil
}

func appendMap(out []byte, m map[string]any) ([]byte, error) {
	var room [16]string
	var err error
	out = append(out, '{')
	for i, key := range appendKeys(room[:0], m) {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = appendText(out, key); err != nil {
			return out, err
		}
		out = append(out, ':')
		if out, err = AppendJSON(out, m[key]); err != nil {
			return out, err
		}
	}
	return append(out, '}'), nil
}

// appendKeys appends the keys of m to out, which is empty, in their order.
func appendKeys(out []string, m map[string]any) []string {
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func appendList(out []byte, list []any) ([]byte, error) {
	var err error
	out = append(out, '[')
	for i, e := range list {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = AppendJSON(out, e); err != nil {
			return out, err
		}
	}
	return append(out, ']'), nil
}
