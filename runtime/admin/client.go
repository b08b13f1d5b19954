package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
)

// ErrNotRunning is in the chain of a [Client]'s error when nobody answers on the
// socket: there is no socket, or its owner is dead.
var ErrNotRunning = errors.New("no starling runs here")

// answerLimit bounds what the client reads: thousands of modules fit.
const answerLimit = 64 << 20

// ClientOptions say which instance a [Client] asks.
type ClientOptions struct {
	// Socket is the path of the instance's admin socket.
	Socket string
	// Dial connects to the socket in the place of Socket, which is then its name in messages.
	Dial func(context.Context) (net.Conn, error)
	// Timeout bounds one question with its answer; 0 means 10 seconds.
	Timeout time.Duration
}

// Client asks the admin API of one running instance. It is safe for concurrent use.
type Client struct {
	socket  string
	local   bool // the socket is a path of this machine
	timeout time.Duration
	http    *http.Client
}

// NewClient returns a client; it connects with the first question.
func NewClient(o ClientOptions) *Client {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	local := o.Dial == nil
	if local {
		var dialer net.Dialer
		o.Dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "unix", o.Socket) }
	}
	return &Client{
		socket:  o.Socket,
		local:   local,
		timeout: o.Timeout,
		http: &http.Client{Transport: &http.Transport{
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) },
			DisableKeepAlives: local, // one question a command; elsewhere to connect takes longer than to ask
		}},
	}
}

// Dial connects to the socket of an instance on this machine. Errors are those of [Client.Status].
func Dial(ctx context.Context, socket string) (*net.UnixConn, error) {
	if err := checkSocketPath(socket); err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, (&Client{socket: socket, local: true}).explain(ctx, err)
	}
	return conn.(*net.UnixConn), nil
}

// Close ends connections on which nothing goes on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the status of the whole instance. Errors: [ErrNotRunning]; the
// socket belongs to another user; the instance does not answer in time.
func (c *Client) Status(ctx context.Context) (status.Status, error) {
	var st status.Status
	return st, c.ask(ctx, statusPath, &st)
}

// Explain asks who gave the values of a module, or of "global". Errors are those of
// [Client.Status], and that there is no such module.
func (c *Client) Explain(ctx context.Context, module string) (values.Explanation, error) {
	var x values.Explanation
	return x, c.ask(ctx, explainPath+"?"+url.Values{"module": {module}}.Encode(), &x)
}

// Parents asks what the controllers of a module have decided about the parent of a key. Errors are those
// of [Client.Status], and that there is no such module, controller or parent.
func (c *Client) Parents(ctx context.Context, module, key string) ([]status.Parent, error) {
	var parents []status.Parent
	return parents, c.ask(ctx, parentsPath+"?"+url.Values{"module": {module}, "key": {key}}.Encode(), &parents)
}

// Queues asks what waits in the lanes of all modules, and why. Errors are those of [Client.Status].
func (c *Client) Queues(ctx context.Context) ([]status.Queue, error) {
	var queues []status.Queue
	err := c.ask(ctx, queuesPath, &queues)
	return queues, err
}

// RunNow has the hooks of a module run, or with an id that one, and returns the ids of those that will. It does not
// wait for them. Errors are those of [Client.Status], and that nothing of it runs now.
func (c *Client) RunNow(ctx context.Context, module, hook string) ([]string, error) {
	var hooks []string
	return hooks, c.do(ctx, http.MethodPost, runPath+"?"+url.Values{"module": {module}, "hook": {hook}}.Encode(), &hooks)
}

// Snapshots asks for the snapshots of a hook by its id, without secrets. Errors are those of
// [Client.Status], and that there is no such hook.
func (c *Client) Snapshots(ctx context.Context, hook string) ([]status.Snapshot, error) {
	var snapshots []status.Snapshot
	err := c.ask(ctx, snapshotsPath+"?"+url.Values{"hook": {hook}}.Encode(), &snapshots)
	return snapshots, err
}

// Replica asks the process how it is. Errors are those of [Client.Status].
func (c *Client) Replica(ctx context.Context) (status.Replica, error) {
	var r status.Replica
	return r, c.ask(ctx, replicaPath, &r)
}

// LogLevel asks for the least level that is logged. With another level it has that one logged
// from now on, and returns what it was. Errors are those of [Client.Status], and that there is
// no such level.
func (c *Client) LogLevel(ctx context.Context, level string) (was string, err error) {
	if level == "" {
		err = c.ask(ctx, logLevelPath, &was)
	} else {
		err = c.do(ctx, http.MethodPut, logLevelPath+"?"+url.Values{"level": {level}}.Encode(), &was)
	}
	return was, err
}

// ask reads the answer at a path into v.
func (c *Client) ask(ctx context.Context, path string, v any) error {
	return c.do(ctx, http.MethodGet, path, v)
}

// do sends a request and reads its answer into v.
func (c *Client) do(ctx context.Context, method, path string, v any) error {
	body, err := c.send(ctx, method, path)
	if err != nil {
		return err
	}
	// Integers stay integers.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, v); err != nil {
		return fmt.Errorf("cannot read the answer on %s: %w; is the running starling of another version?", c.socket, err)
	}
	return nil
}

// send sends a request and returns the body of its answer.
func (c *Client) send(ctx context.Context, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	res, err := c.open(ctx, method, path)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return c.read(ctx, res)
}

// open sends a request, and returns an answer that is a success.
func (c *Client) open(ctx context.Context, method, path string) (*http.Response, error) {
	if c.local {
		if err := checkSocketPath(c.socket); err != nil {
			return nil, err
		}
	}
	// The host is not used: the socket is the address.
	req, err := http.NewRequestWithContext(ctx, method, "http://starling"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	body, err := c.read(ctx, res)
	if err != nil {
		return nil, err
	}
	var f failure
	if json.Unmarshal(body, &f) != nil || f.Error == "" {
		f.Error = res.Status
	}
	return nil, fmt.Errorf("starling on %s answered: %s", c.socket, f.Error)
}

func (c *Client) read(ctx context.Context, res *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(res.Body, answerLimit+1))
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if len(body) > answerLimit {
		return nil, fmt.Errorf("the answer on %s is larger than %d MiB; ask for less or read /metrics", c.socket, answerLimit>>20)
	}
	return body, nil
}

// explain turns a failure to reach the instance into what it means.
func (c *Client) explain(ctx context.Context, err error) error {
	switch {
	case !c.local && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		if inner := new(url.Error); errors.As(err, &inner) {
			err = inner.Err
		}
		return fmt.Errorf("cannot ask starling in %s: %w", c.socket, err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w (socket %s)", ErrNotRunning, c.socket)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("not allowed to open %s; run as the user that runs starling", c.socket)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("starling on %s did not answer within %s; its log may say why", c.socket, c.timeout)
	}
	return fmt.Errorf("cannot ask starling on %s: %w", c.socket, cause(err))
}
