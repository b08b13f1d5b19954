package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// maxComplaint bounds what is kept of the stderr of the command of a tunnel.
const maxComplaint = 64 << 10

// Tunnel runs a command in a container, and is its stdin and stdout as one connection. ctx bounds the opening
// alone; the connection has no deadlines, and its end is that of the command's input. A command that fails makes
// the next read fail, with the last line of its stderr. Errors of the opening are those of the API server.
func (c *Client) Tunnel(ctx context.Context, pod effect.Ref, container string, argv []string) (net.Conn, error) {
	s, err := c.openExec(ctx, effect.Exec{Pod: pod, Container: container, Argv: argv, Stdin: []byte{}})
	if err != nil {
		return nil, c.explain(err, action{word: "exec in", ref: pod, mapping: pods, what: "its container"})
	}
	out, in := io.Pipe()
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	t := &tunnel{socket: s, out: out, end: end}
	t.beside.Go(func() { s.keepAlive(alive) })
	t.beside.Go(func() {
		o := &outputs{left: maxComplaint, channel: -1, into: in}
		_ = in.CloseWithError(o.end(s.receive(o.take)))
		s.Close()
	})
	return t, nil
}

// end says how the command of a tunnel has ended, by the error of its connection.
func (o *outputs) end(err error) error {
	switch {
	case errors.Is(err, errTooMuch):
		return errors.New("the command in the container says too much on stderr")
	case !errors.Is(err, errEnded):
		return errors.New("the connection to the container has ended: the Pod, or its node, may be gone")
	}
	said := strings.Split(strings.TrimSpace(string(o.stderr)), "\n")
	last := strings.TrimPrefix(cut(message.Line(said[len(said)-1])), "error: ")
	result, err := o.result()
	switch {
	case err != nil && last != "":
		return fmt.Errorf("%w: %s", err, last)
	case err != nil:
		return err
	case result.Code != 0 && last == "":
		return fmt.Errorf("the command in the container has ended with exit code %d", result.Code)
	case result.Code != 0:
		return errors.New(last)
	}
	return io.EOF
}

// tunnel is a connection to a command in a container.
type tunnel struct {
	socket *socket
	out    *io.PipeReader
	end    func()
	beside sync.WaitGroup
}

// Read reads what the command has written.
func (t *tunnel) Read(into []byte) (int, error) { return t.out.Read(into) }

// Write sends to the command.
func (t *tunnel) Write(data []byte) (int, error) {
	for sent := 0; sent < len(data); {
		chunk := data[sent:min(len(data), sent+stdinChunk)]
		if err := t.socket.send(opBinary, []byte{remotecommand.StreamStdIn}, chunk); err != nil {
			return sent, err
		}
		sent += len(chunk)
	}
	return len(data), nil
}

// Close ends the input of the command, and the connection.
func (t *tunnel) Close() error {
	t.end()
	t.socket.Close()
	_ = t.out.Close()
	t.beside.Wait()
	return nil
}

func (t *tunnel) LocalAddr() net.Addr              { return tunnelAddr{} }
func (t *tunnel) RemoteAddr() net.Addr             { return tunnelAddr{} }
func (t *tunnel) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (t *tunnel) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (t *tunnel) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// tunnelAddr is the address of both ends of a tunnel.
type tunnelAddr struct{}

func (tunnelAddr) Network() string { return "exec" }
func (tunnelAddr) String() string  { return "container" }
