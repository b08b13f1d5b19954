package admin

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
)

func TestRecordsKeyOverTheSocket(t *testing.T) {
	o := options(t)
	want := []byte{0, 1, 2, 0xff}
	var err error
	o.RecordsKey = func(context.Context) ([]byte, error) { return want, err }
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

// A process tells of what it has recorded, and hands out the files of a run, as they are kept.
func TestRecordsOverTheSocket(t *testing.T) {
	o := options(t)
	o.RecordsDir = t.TempDir()
	o.RecordsKey = func(context.Context) ([]byte, error) { return nil, errors.New("there is none") }
	start(t, o)
	c := NewClient(ClientOptions{Socket: o.Socket})
	if got, err := c.Runs(t.Context()); err != nil || len(got.Headers) != 0 || got.Others != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	_, err := c.Record(t.Context(), "k3f9-1")
	if want := "no run k3f9-1 is kept in " + o.RecordsDir; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %s", err, want)
	}
	if _, err := c.Record(t.Context(), "../k3f9-1"); err == nil || !strings.Contains(err.Error(), "is no id of a run") {
		t.Errorf("error is %v", err)
	}
}

// A client with a connection elsewhere asks several times by one, and says where when it fails.
func TestAClientDials(t *testing.T) {
	o := options(t)
	o.Replica = func() status.Replica { return status.Replica{Name: "a", Leader: true} }
	start(t, o)
	dials := 0
	c := NewClient(ClientOptions{Socket: "pod ops/a", Dial: func(ctx context.Context) (net.Conn, error) {
		dials++
		return Dial(ctx, o.Socket)
	}})
	defer c.Close()
	for range 3 {
		if r, err := c.Replica(t.Context()); err != nil || !r.Leader {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if dials != 1 {
		t.Errorf("it has dialled %d times", dials)
	}
	broken := NewClient(ClientOptions{Socket: "pod ops/a", Dial: func(context.Context) (net.Conn, error) { return nil, errors.New("the pod is gone") }})
	if _, err := broken.Replica(t.Context()); err == nil || err.Error() != "cannot ask starling in pod ops/a: the pod is gone" {
		t.Errorf("error is %v", err)
	}
	if _, err := Dial(t.Context(), o.Socket+"x"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("error is %v", err)
	}
}
