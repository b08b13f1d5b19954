package cluster

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// socket is the client's end of a WebSocket (RFC 6455), without extensions: as much of it as the
// API server's streams need. Decision 59 says why it is written out.
type socket struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader

	sending sync.Mutex
}

// Operations of frames.
const (
	opContinue = 0x0
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xa
	// opControl begins those that are no data.
	opControl = 0x8
)

const (
	// frameChunk is how much of a frame is taken at a time.
	frameChunk = 32 << 10
	// maxControl bounds what a control frame holds.
	maxControl = 125
	// pingEvery is how often a ping goes: proxies cut connections on which nothing comes.
	pingEvery = 10 * time.Second
	// maxRefusal bounds the answer of a server that opens no socket.
	maxRefusal = 64 << 10
)

// acceptGUID is what a server adds to the key of a request to open a socket.
const acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

func acceptOf(key string) string {
	sum := sha1.Sum([]byte(key + acceptGUID))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// openSocket opens one that speaks a protocol. ctx bounds the opening alone. A refusal of the API
// server is one of its status errors.
func openSocket(ctx context.Context, transport http.RoundTripper, url, protocol string) (*socket, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, errors.New("the URL is broken")
	}
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	key := base64.StdEncoding.EncodeToString(nonce)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": key, "Sec-Websocket-Protocol": protocol,
	} {
		req.Header.Set(name, value)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	conn, both := res.Body.(io.ReadWriteCloser)
	switch {
	case res.StatusCode != http.StatusSwitchingProtocols:
		defer res.Body.Close()
		return nil, refusal(res)
	case !both || res.Header.Get("Sec-Websocket-Accept") != acceptOf(key) || res.Header.Get("Sec-Websocket-Protocol") != protocol:
		_ = res.Body.Close()
		return nil, errors.New("the API server, or a proxy before it, does not speak " + protocol + " over WebSockets")
	}
	return &socket{conn: conn, in: bufio.NewReader(conn)}, nil
}

// refusal is the status that the API server answers with.
func refusal(res *http.Response) error {
	if res.StatusCode < 400 {
		return fmt.Errorf("the API server, or a proxy before it, opens no WebSocket: it answers %d", res.StatusCode)
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what has come
	var s metav1.Status
	if json.Unmarshal(body, &s) == nil && s.Kind == "Status" && s.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: s}
	}
	return apierrors.NewGenericServerResponse(res.StatusCode, "create", pods.GVR.GroupResource(), "", strings.TrimSpace(string(body)), 0, false)
}

// Close cuts the connection.
func (s *socket) Close() { _ = s.conn.Close() }

// send sends one frame, which is the whole message.
func (s *socket) send(op byte, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	frame := make([]byte, 0, size+14)
	frame = append(frame, 0x80|op)
	switch {
	case size <= maxControl:
		frame = append(frame, 0x80|byte(size))
	case size < 1<<16:
		frame = binary.BigEndian.AppendUint16(append(frame, 0x80|126), uint16(size))
	default:
		frame = binary.BigEndian.AppendUint64(append(frame, 0x80|127), uint64(size))
	}
	var mask [4]byte
	if _, err := rand.Read(mask[:]); err != nil {
		return err
	}
	frame = append(frame, mask[:]...)
	begin := len(frame)
	for _, p := range parts {
		frame = append(frame, p...)
	}
	for i := range frame[begin:] {
		frame[begin+i] ^= mask[i%4]
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	_, err := s.conn.Write(frame)
	return err
}

// keepAlive sends pings until ctx ends.
func (s *socket) keepAlive(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.send(opPing) != nil {
				return // receive finds out
			}
		}
	}
}

var errFrame = errors.New("the API server sends what is no WebSocket frame")

// header reads the beginning of a frame.
func (s *socket) header() (op byte, final bool, size uint64, err error) {
	var h [8]byte
	if _, err := io.ReadFull(s.in, h[:2]); err != nil {
		return 0, false, 0, err
	}
	op, final, size = h[0]&0x0f, h[0]&0x80 != 0, uint64(h[1]&0x7f)
	if h[0]&0x70 != 0 || h[1]&0x80 != 0 { // extensions, and masks of servers, do not exist
		return 0, false, 0, errFrame
	}
	switch size {
	case 126:
		_, err = io.ReadFull(s.in, h[:2])
		size = uint64(binary.BigEndian.Uint16(h[:2]))
	case 127:
		_, err = io.ReadFull(s.in, h[:8])
		size = binary.BigEndian.Uint64(h[:8])
	}
	if op >= opControl && (size > maxControl || !final) {
		return 0, false, 0, errFrame
	}
	return op, final, size, err
}

// receive hands out messages, in chunks, and answers pings, until take, which is told of the last
// chunk of each message, or the connection has an error. A socket that the server closes has
// [io.EOF]. take must not keep chunks.
func (s *socket) receive(take func(chunk []byte, last bool) error) error {
	buf, within := make([]byte, frameChunk), false
	for {
		op, final, size, err := s.header()
		switch {
		case err != nil:
			return err
		case op >= opControl:
			if err := s.control(op, buf[:size]); err != nil {
				return err
			}
			continue
		case (op == opContinue) != within:
			return errFrame
		}
		for first := true; first || size > 0; first = false {
			chunk := buf[:min(size, frameChunk)]
			if _, err := io.ReadFull(s.in, chunk); err != nil {
				return err
			}
			size -= uint64(len(chunk))
			if err := take(chunk, final && size == 0); err != nil {
				return err
			}
		}
		within = !final
	}
}

// control reads what a control frame holds, and answers it.
func (s *socket) control(op byte, payload []byte) error {
	if _, err := io.ReadFull(s.in, payload); err != nil {
		return err
	}
	switch op {
	case opClose:
		_ = s.send(opClose, payload) // the connection ends anyway
		return io.EOF
	case opPing:
		return s.send(opPong, payload)
	case opPong:
		return nil
	}
	return errFrame
}
