package cluster

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	e2e "github.com/starling-operator/starling/e2e/cluster"
)

// tunnels has a kubelet behave so, and connects to the command.
func tunnels(t *testing.T, behave func(p *e2e.Socket)) net.Conn {
	t.Helper()
	c := tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		p := e2e.OpenSocket(w, r)
		defer p.Close()
		if r.URL.Query().Get("stdin") != "true" {
			t.Errorf("asked for %s", r.URL)
		}
		behave(p)
	})
	conn, err := c.Tunnel(t.Context(), db0, "db", []string{"starling", "admin-socket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A command is a connection: what is written is its stdin, what it writes is read, many times in turn; it ends with
// the connection.
func TestTunnel(t *testing.T) {
	ended := make(chan error, 1)
	conn := tunnels(t, func(p *e2e.Socket) {
		for {
			op, payload, err := p.Hear()
			switch {
			case err != nil:
				ended <- err
				return
			case op == opBinary && payload[0] == 0:
				p.Say(2, "a warning\n")
				p.Frame(opBinary, "\x01you said ")
				p.Frame(0x80, string(payload[1:]))
			}
		}
	})
	answers := bufio.NewReader(conn)
	for _, text := range []string{"one\n", strings.Repeat("x", stdinChunk-1) + "\n", "three\n"} {
		if n, err := conn.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if got, err := answers.ReadString('\n'); got != "you said "+text || err != nil {
			t.Fatalf("read %.40q, %v", got, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestTunnelsThatEnd(t *testing.T) {
	for name, c := range map[string]struct {
		behave func(p *e2e.Socket)
		want   string
	}{
		"the command is done":        {func(p *e2e.Socket) { p.Say(1, "bye"); p.End(0) }, "EOF"},
		"the command fails":          {func(p *e2e.Socket) { p.Say(2, "note: so\nerror: no starling runs here\n"); p.End(1) }, "no starling runs here"},
		"the command fails silently": {func(p *e2e.Socket) { p.End(3) }, "the command in the container has ended with exit code 3"},
		"the connection ends":        {func(*e2e.Socket) {}, "the connection to the container has ended: the Pod, or its node, may be gone"},
		"too many complaints":        {func(p *e2e.Socket) { p.Say(2, strings.Repeat("x", maxComplaint+1)); _, _, _ = p.Hear() }, "the command in the container says too much on stderr"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := tunnels(t, c.behave)
			_, err := io.Copy(io.Discard, conn)
			if err == nil {
				err = io.EOF
			}
			if err.Error() != c.want {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}
