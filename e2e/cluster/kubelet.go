package cluster

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// Kubelet has a server with TLS stand for the kubelet of a node, which it makes: the API server asks it for
// commands and logs, at "/exec/NAMESPACE/POD/CONTAINER" and "/containerLogs/…". The node is deleted when the
// test ends.
func (c *Cluster) Kubelet(t testing.TB, node string, h http.HandlerFunc) {
	t.Helper()
	of := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	serveKubelet(t, &of.Status, h)
	nodes := c.Client.CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), of, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("add node %s: %v", node, err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), node, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete node %s: %v", node, err)
		}
	})
}

// Socket is the kubelet's end of the WebSocket of a command.
type Socket struct {
	net.Conn
	// In is all that the client sends.
	In *bufio.Reader
}

// OpenSocket answers a request to open one.
func OpenSocket(w http.ResponseWriter, r *http.Request) *Socket {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(accept[:]), r.Header.Get("Sec-WebSocket-Protocol"))
	return &Socket{conn, rw.Reader}
}

// Frame sends one frame; first holds its operation, and 0x80 when it is the last of its message. It says
// whether somebody may still listen.
func (s *Socket) Frame(first byte, payload string) bool {
	out := []byte{first}
	switch n := len(payload); {
	case n < 126:
		out = append(out, byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 127), uint64(n))
	}
	_, err := s.Write(append(out, payload...))
	return err == nil
}

// Say sends a message on a channel.
func (s *Socket) Say(channel byte, text string) bool {
	return s.Frame(0x82, string([]byte{channel})+text)
}

// End says how the command has ended.
func (s *Socket) End(code int) {
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: "command terminated", Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(code)}},
		}}
	}
	s.Status(status)
}

// Status says with this status how it has.
func (s *Socket) Status(status metav1.Status) {
	data, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	s.Say(remotecommand.StreamErr, string(data))
	s.Frame(0x88, "\x03\xe8") // nothing comes after it, on purpose
}

// Hear returns the next frame of the client, which is masked.
func (s *Socket) Hear() (op byte, payload []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(s.In, h[:2]); err != nil {
		return 0, nil, err
	}
	if h[0]&0x80 == 0 || h[1]&0x80 == 0 {
		return 0, nil, fmt.Errorf("a frame begins with %x: it is no whole message, or not masked", h[:2])
	}
	op = h[0] & 0x0f
	size := uint64(h[1] & 0x7f)
	switch size {
	case 126:
		_, err = io.ReadFull(s.In, h[:2])
		size = uint64(binary.BigEndian.Uint16(h[:2]))
	case 127:
		_, err = io.ReadFull(s.In, h[:8])
		size = binary.BigEndian.Uint64(h[:8])
	}
	if err != nil {
		return 0, nil, err
	}
	var mask [4]byte
	if _, err := io.ReadFull(s.In, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, size)
	_, err = io.ReadFull(s.In, payload)
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return op, payload, err
}

// Input reads what the command is given until its end.
func (s *Socket) Input() (string, error) {
	var all strings.Builder
	err := s.into(&all)
	return all.String(), err
}
