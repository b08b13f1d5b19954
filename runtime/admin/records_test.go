package admin

import (
	"bytes"
	"errors"
	"testing"
)

func TestRecordsKeyOverTheSocket(t *testing.T) {
	o := options(t)
	want := []byte{0, 1, 2, 0xff}
	var err error
	o.RecordsKey = func() ([]byte, error) { return want, err }
	start(t, o)
	c := NewClient(ClientOptions{Socket: o.Socket})
	if got, err := c.RecordsKey(t.Context()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	err = errors.New("there is none")
	if _, got := c.RecordsKey(t.Context()); got == nil || got.Error() != "starling on "+o.Socket+" answered: there is none" {
		t.Errorf("got %v", got)
	}
}
