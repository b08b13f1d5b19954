package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

var _ builtins.Answerer = (*Client)(nil)

var pods = Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", Namespaced: true}

// stdinChunk is how much of an input goes in one message.
const stdinChunk = 32 << 10

// Exec implements [builtins.Answerer]. It begins no command once [Client.Shut] was called: a command
// may change what it likes.
func (c *Client) Exec(ctx context.Context, e effect.Exec) (builtins.Executed, error) {
	limited, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	act := action{word: "exec in", ref: e.Pod, mapping: pods, what: "its container"}
	s, err := c.openExec(limited, e)
	if err != nil {
		return builtins.Executed{}, c.podError(ctx, limited, err, act, "no answer", e.Timeout.String())
	}
	out := &outputs{left: e.MaxBytes, channel: -1}
	if err = exchange(limited, s, e.Stdin, out); errors.Is(err, errEnded) {
		return out.result()
	}
	switch {
	case errors.Is(err, errTooMuch):
		err = builtins.TooMuchOutput(e.MaxBytes)
	case limited.Err() == nil:
		err = &builtins.NoAnswerError{Reason: "the connection ended before the command, with no exit code: the Pod, or its node, may be gone"}
	}
	return builtins.Executed{}, c.podError(ctx, limited, err, act, "the command has not ended", e.Timeout.String()+"; nobody listens any more, and it may go on")
}

// podError is the error of a question to a container: of outer, whose end is no answer of
// anybody, of limited, which ends by the timeout, or else of the API server.
func (c *Client) podError(outer, limited context.Context, err error, act action, late, timeout string) error {
	switch {
	case outer.Err() != nil:
		return outer.Err()
	case limited.Err() != nil:
		return &builtins.NoAnswerError{Reason: late + " within " + timeout}
	case errors.As(err, new(*builtins.NoAnswerError)):
		return err
	}
	explained := c.explain(err, act)
	var api apierrors.APIStatus
	if !errors.As(err, &api) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsTooManyRequests(err) {
		return explained
	}
	return &builtins.NoAnswerError{Reason: explained.Error()} // of the Pod, its container or its node
}

// openExec begins the command.
func (c *Client) openExec(ctx context.Context, e effect.Exec) (*socket, error) {
	r, err := c.request(http.MethodGet, pods, e.Pod.Namespace, e.Pod.Name)
	if err != nil {
		return nil, err
	}
	r = r.Suffix("exec").Param("container", e.Container).Param("stdout", "true").Param("stderr", "true")
	if e.Stdin != nil {
		r = r.Param("stdin", "true")
	}
	for _, arg := range e.Argv {
		r = r.Param("command", arg)
	}
	if err := c.config.RateLimiter.Wait(ctx); err != nil {
		return nil, err
	}
	if err := c.fence.enter(ctx); err != nil {
		return nil, err
	}
	defer c.fence.leave()
	return openSocket(ctx, c.streams, r.URL().String(), remotecommand.StreamProtocolV5Name)
}

// exchange sends the input and takes the outputs until the command, the connection or ctx ends.
// It closes the socket.
func exchange(ctx context.Context, s *socket, stdin []byte, out *outputs) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer s.Close()
	defer cancel()
	context.AfterFunc(ctx, s.Close)
	beside.Go(func() { s.keepAlive(ctx) })
	if stdin != nil {
		beside.Go(func() { s.sendInput(stdin) })
	}
	return s.receive(out.take)
}

// sendInput sends the input and its end. A command need not read it: its error is of no interest.
func (s *socket) sendInput(stdin []byte) {
	for len(stdin) > 0 {
		n := min(len(stdin), stdinChunk)
		if s.send(opBinary, []byte{remotecommand.StreamStdIn}, stdin[:n]) != nil {
			return
		}
		stdin = stdin[n:]
	}
	_ = s.send(opBinary, []byte{remotecommand.StreamClose, remotecommand.StreamStdIn})
}

var (
	// errEnded says that the status of the command has come, which is the last that comes.
	errEnded   = errors.New("the command has ended")
	errTooMuch = errors.New("there is too much output")
)

// maxStatus bounds the status of a command.
const maxStatus = 64 << 10

// outputs takes messages apart: the first byte of each names its channel.
type outputs struct {
	into                   io.Writer // takes stdout in place of the field, past the limit, unless it is nil
	left                   int       // bytes that stdout and stderr may still have
	channel                int       // of the message that has begun; -1: none has
	stdout, stderr, status []byte
}

func (o *outputs) take(chunk []byte, last bool) error {
	if o.channel < 0 && len(chunk) > 0 {
		o.channel, chunk = int(chunk[0]), chunk[1:]
	}
	into := &o.status
	switch o.channel {
	case remotecommand.StreamStdOut:
		into = &o.stdout
		if o.into != nil {
			if _, err := o.into.Write(chunk); err != nil {
				return err
			}
			chunk = nil
		}
	case remotecommand.StreamStdErr:
		into = &o.stderr
	case remotecommand.StreamErr:
	default: // such as the end of a channel
		chunk = nil
	}
	if into != &o.status {
		o.left -= len(chunk)
	}
	if o.left < 0 || len(o.status)+len(chunk) > maxStatus && into == &o.status {
		return errTooMuch
	}
	*into = append(*into, chunk...)
	if last {
		ended := o.channel == remotecommand.StreamErr && len(o.status) > 0
		o.channel = -1
		if ended {
			return errEnded
		}
	}
	return nil
}

// result reads the status.
func (o *outputs) result() (builtins.Executed, error) {
	out := builtins.Executed{Stdout: o.stdout, Stderr: o.stderr}
	var s metav1.Status
	if err := json.Unmarshal(o.status, &s); err != nil {
		return builtins.Executed{}, &builtins.NoAnswerError{Reason: "the exit code of the command cannot be read"}
	}
	if s.Status == metav1.StatusSuccess {
		return out, nil
	}
	if s.Reason == remotecommand.NonZeroExitCodeReason && s.Details != nil {
		for _, cause := range s.Details.Causes {
			if code, err := strconv.Atoi(cause.Message); err == nil && cause.Type == remotecommand.ExitCodeCauseType {
				out.Code = code
				return out, nil
			}
		}
	}
	return builtins.Executed{}, &builtins.NoAnswerError{Reason: "the command was not run, or has no exit code: " + cut(message.Line(s.Message))}
}

// Logs implements [builtins.Answerer].
func (c *Client) Logs(ctx context.Context, q effect.LogQuery) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	r, err := c.request(http.MethodGet, pods, q.Pod.Namespace, q.Pod.Name)
	if err != nil {
		return nil, err
	}
	r = r.Suffix("log").Param("container", q.Container).Param("limitBytes", strconv.Itoa(q.MaxBytes+1)).SetHeader("Accept", "*/*").MaxRetries(0)
	if q.Tail > 0 {
		r = r.Param("tailLines", strconv.Itoa(q.Tail))
	}
	if q.Since > 0 {
		r = r.Param("sinceSeconds", strconv.Itoa(int(q.Since.Seconds())))
	}
	if q.Previous {
		r = r.Param("previous", "true")
	}
	var text []byte
	body, err := r.Stream(limited)
	if err == nil {
		defer body.Close()
		text, err = io.ReadAll(io.LimitReader(body, int64(q.MaxBytes)+1))
		if err != nil && limited.Err() == nil {
			err = &builtins.NoAnswerError{Reason: "the log was cut off: the Pod, or its node, may be gone"}
		}
	}
	switch {
	case err != nil:
		act := action{word: "read", ref: q.Pod, mapping: pods, what: "its log"}
		return nil, c.podError(ctx, limited, err, act, "the log has not ended", q.Timeout.String())
	case len(text) > q.MaxBytes:
		return nil, builtins.TooLargeLog(q.MaxBytes)
	}
	return text, nil
}
